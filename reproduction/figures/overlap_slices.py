"""Slices through the phase diagram: the overlaps of both branches, a panel for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    COLORS,
    MARKERS,
    ORDER_PARAMETERS,
    OVERLAPS,
    ink_color,
    new_figure,
    overlap_scale,
    plot_branch,
    plot_seed_means,
    squeeze_parameter,
)
from reproduction.figures.slices import Slice, add_theory_legend, slice_name


def plot_overlap_slices(
    columns: Mapping[str, Sequence[Slice]], path: str | Path | None = None
) -> Any:
    """Overlaps of both branches against alpha; a row for each parameter, as in `plot_slices`."""
    width = max(map(len, columns.values()))
    size = (2.6 * width, 2.3 * len(columns) + 0.6)
    with new_figure(path, len(columns), width, size=size, sharex=True, squeeze=False) as (
        figure,
        axes,
    ):
        for row, (parameter, curves) in zip(axes, columns.items(), strict=True):
            for axis in row[len(curves) :]:
                axis.set_axis_off()
            for axis, (value, theory, runs) in zip(row, curves, strict=False):
                plot_overlaps(axis, theory, squeeze_parameter(runs))
                axis.set_title(slice_name(parameter, value), fontsize="medium")
        for axis in axes[-1]:
            axis.set_xlabel(ALPHA)
        axes[len(columns) // 2, 0].set_ylabel(OVERLAPS)
        for name in ORDER_PARAMETERS:
            axes[0, 0].plot([], [], color=COLORS[name], marker=MARKERS[name], label=name)
        add_theory_legend(figure, axes[0, 0], runs)
    return figure


def plot_overlaps(axis: Any, theory: xr.Dataset, runs: xr.Dataset) -> None:
    """Theta of the semantic and m of the positional branch, in theory and trained."""
    theory, scale = theory.sortby("alpha"), overlap_scale(theory)
    for name, overlap in ORDER_PARAMETERS.items():
        branch, color, marker = theory.sel(branch=name), COLORS[name], MARKERS[name]
        hollow = {"marker": marker, "ms": 3.5}
        plot_branch(axis, branch, branch[overlap] / scale, hollow=hollow, color=color)
        trained = runs[overlap].sel(start=name) / scale
        plot_seed_means(axis, trained, fmt=marker, color=color, ms=3.5, mec=ink_color(), mew=0.4)
    axis.set_ylim(bottom=0)
