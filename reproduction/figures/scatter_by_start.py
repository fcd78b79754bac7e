"""Final overlaps of runs, colored by their initialization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    COLORS,
    MARKERS,
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
    """Scatter of ``(m, theta)`` of every run; one panel for each optimizer.

    Parameters
    ----------
    theory : xarray.Dataset
        The branches at the alpha of the runs; drawn as stars.
    runs : xarray.Dataset
        Dimensions ``optimizer``, ``start`` and ``seed``.
    """
    scale = overlap_scale(theory)
    kinds = list(runs["optimizer"].values)
    shared = {"sharex": True, "sharey": True, "squeeze": False}
    with new_figure(path, 1, len(kinds), size=(4.1 * len(kinds), 3.6), **shared) as (
        figure,
        axes,
    ):
        for axis, kind in zip(axes[0], kinds, strict=True):
            for start in runs["start"].values:
                chosen = runs.sel(optimizer=kind, start=start)
                axis.plot(
                    chosen["m"] / scale, chosen["theta"] / scale, ls="none", alpha=0.8,
                    marker=MARKERS.get(str(start), "v"), color=COLORS[str(start)],
                    # Random starts often end at the same points: hollow and larger.
                    ms=9 if start == "random" else 5, mfc="none" if start == "random" else None,
                    label=f"{start} start",
                )  # fmt: skip
            plot_overlap_plane(axis, theory, scale)
            constants = [(name, symbol) for name, symbol in SIZES.items() if name in runs.attrs]
            sizes = [rf"${symbol} = {runs.attrs[name]:g}$" for name, symbol in constants]
            axis.set_title(", ".join([OPTIMIZER_LABELS.get(str(kind), str(kind)), *sizes]))
        axes[0, 0].set_ylabel(r"$|\theta|/\sigma^2$")
        axes[0, 0].legend()
    return figure
