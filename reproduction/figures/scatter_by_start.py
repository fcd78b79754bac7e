"""Final overlaps of runs, colored by their initialization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    COLORS,
    OPTIMIZER_LABELS,
    new_figure,
    overlap_scale,
    plot_overlap_plane,
)

#: Parameters in the title of each panel.
SIZES = {"d": "d", "alpha": r"\alpha"}


def plot_scatter_by_start(
    theory: xr.Dataset, runs: xr.Dataset, path: str | Path | None = None
) -> Any:
    """Scatter of ``(m, theta)`` of every run; a row for each optimizer, a column for each start.

    Parameters
    ----------
    theory : xarray.Dataset
        The branches at the alpha of the runs; drawn as stars.
    runs : xarray.Dataset
        Dimensions ``optimizer``, ``start`` and ``seed``.
    """
    scale = overlap_scale(theory)
    kinds, starts = list(runs["optimizer"].values), list(runs["start"].values)
    shared = {"sharex": True, "sharey": True, "squeeze": False}
    size = (2.9 * len(starts), 2.6 * len(kinds) + 0.5)
    with new_figure(path, len(kinds), len(starts), size=size, **shared) as (figure, axes):
        for row, kind in zip(axes, kinds, strict=True):
            for axis, start in zip(row, starts, strict=True):
                chosen = runs.sel(optimizer=kind, start=start)
                axis.plot(
                    chosen["m"] / scale, chosen["theta"] / scale, ls="none", alpha=0.6,
                    marker="o", color=COLORS[str(start)], ms=4.5, mew=0, label=f"{start} start",
                )  # fmt: skip
                plot_overlap_plane(axis, theory, scale)
                axis.set_title(f"{OPTIMIZER_LABELS.get(str(kind), str(kind))}, {start} start")
            row[0].set_ylabel(r"$|\theta|/\sigma^2$")
        for axis in axes[:-1].flat:
            axis.set_xlabel("")
        constants = [(name, symbol) for name, symbol in SIZES.items() if name in runs.attrs]
        sizes = ", ".join(rf"${symbol} = {runs.attrs[name]:g}$" for name, symbol in constants)
        star, label = axes[0, 0].get_legend_handles_labels()
        figure.legend(star[-1:], [f"{label[-1]}   ({sizes})"], loc="outside upper center")
    return figure
