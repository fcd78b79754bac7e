"""Maps of the differences from released numbers in standard errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import ALPHA, new_figure

#: Quantities of the columns, and the largest difference that colors show.
SHOWN, LIMIT = ("train_loss", "test_error"), 4.0


def plot_difference_maps(rows: xr.Dataset, path: str | Path | None = None) -> Any:
    """Maps over alpha and omega, a row for each table and start that has them.

    Parameters
    ----------
    rows : xarray.Dataset
        Values along ``row`` with ``table``, ``start``, ``quantity``, ``omega``, ``alpha`` and
        ``difference``.
    """
    labels = zip(*(rows[name].values.tolist() for name in ("table", "start")), strict=True)
    kinds = [pair for pair in dict.fromkeys(labels) if _is_map(rows, pair)]
    size = (4.0 * len(SHOWN), 2.1 * max(len(kinds), 1) + 0.4)
    shared = {"squeeze": False, "sharey": True}
    with new_figure(path, max(len(kinds), 1), len(SHOWN), size=size, **shared) as (
        figure,
        axes,
    ):
        mesh = None
        for axis_row, (name, start) in zip(axes, kinds, strict=False):
            for axis, quantity in zip(axis_row, SHOWN, strict=True):
                matches = (rows["table"] == name) & (rows["start"] == start)
                subset = rows.isel(row=np.flatnonzero(matches & (rows["quantity"] == quantity)))
                axis.grid(False)
                axis.set_title(f"{name}, {start} start: {quantity}", fontsize=8)
                if not subset.sizes["row"]:
                    continue
                field = _field(subset)
                mesh = axis.pcolormesh(
                    field["alpha"], field["omega"], field, cmap="RdBu_r", vmin=-LIMIT, vmax=LIMIT,
                    shading="nearest", rasterized=True,
                )  # fmt: skip
            axis_row[0].set_ylabel(r"$\omega$")
        for axis in axes[-1]:
            axis.set_xlabel(ALPHA)
        if mesh is not None:
            figure.colorbar(
                mesh, ax=axes, label="ours less released, in standard errors", shrink=0.6
            )
    return figure


def _is_map(rows: xr.Dataset, pair: tuple[str, str]) -> bool:
    """True if a table has several alphas and omegas."""
    subset = rows.isel(row=np.flatnonzero((rows["table"] == pair[0]) & (rows["start"] == pair[1])))
    return all(np.unique(subset[name].values).size > 1 for name in ("alpha", "omega"))


def _field(subset: xr.Dataset) -> xr.DataArray:
    """The differences over omega and alpha."""
    alphas, column = np.unique(subset["alpha"].values, return_inverse=True)
    omegas, line = np.unique(subset["omega"].values, return_inverse=True)
    values = np.full((omegas.size, alphas.size), np.nan)
    values[line, column] = subset["difference"].values
    return xr.DataArray(values, {"omega": omegas, "alpha": alphas})
