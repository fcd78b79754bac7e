"""Histograms of the differences from released numbers in standard errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import COLORS, ink_color, new_figure

#: Range and number of bars of the histograms.
LIMIT, BARS = 4.5, 45


def plot_differences(rows: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a histogram for each table, with the expected unit normal.

    Parameters
    ----------
    rows : xarray.Dataset
        Values along ``row`` with ``table``, ``difference`` and ``stands_in``.
    """
    names = list(dict.fromkeys(rows["table"].values.tolist()))
    edges = np.linspace(-LIMIT, LIMIT, BARS + 1)
    shared = {"sharex": True, "squeeze": False}
    with new_figure(path, 1, len(names), size=(2.5 * len(names) + 0.6, 2.9), **shared) as (
        figure,
        axes,
    ):
        for axis, name in zip(axes[0], names, strict=True):
            subset = rows.isel(
                row=np.flatnonzero((rows["table"] == name) & (rows["stands_in"] == 0))
            )
            z = subset["difference"].values
            axis.hist(
                np.clip(z, -LIMIT, LIMIT),
                edges,
                density=True,
                color=COLORS["semantic"],
                alpha=0.75,
            )
            x = np.linspace(-LIMIT, LIMIT, 200)
            axis.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), color=ink_color(), lw=1.2)
            spread = z.std(ddof=1) if z.size > 1 else np.nan
            axis.set_title(
                f"{name}\n{z.size} values, mean {z.mean():+.2f}, width {spread:.2f}", fontsize=8
            )
            axis.set(yticks=[], xlabel="standard errors")
        axes[0, 0].set_ylabel("share (line: unit normal)")
    return figure
