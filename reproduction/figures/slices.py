"""Slices through the phase diagram: loss differences, a panel for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    LOSS_GAP,
    RS_MINIMA,
    SYMBOLS,
    add_hollow_entry,
    add_saddle_entry,
    add_theory_entries,
    ink_color,
    loss_gap,
    new_figure,
    plot_loss_gap,
    plot_seed_means,
    squeeze_parameter,
    use_scientific_ticks,
)

#: Colors for the values of a parameter: neither blue nor orange, which are the branches.
SHADES = ("#009E73", "#7F7F7F", "#CC79A7", "#B79F00")

Slice = tuple[float, xr.Dataset, xr.Dataset]


def plot_slices(columns: Mapping[str, Sequence[Slice]], path: str | Path | None = None) -> Any:
    """Loss difference against alpha, a panel for each parameter and a color for each value.

    Parameters
    ----------
    columns : mapping
        For each parameter its values, at most four, each with the theory of `dotphase.curve`
        and the runs of `dotphase.grid` at one value.
    """
    size = (3.5 * len(columns), 3.6)
    with new_figure(path, 1, len(columns), size=size, squeeze=False) as (figure, axes):
        axes = axes[0]
        for axis, (parameter, curves) in zip(axes, columns.items(), strict=True):
            axis.axhline(0, color=ink_color(), lw=0.7)
            for color, (value, theory, runs) in zip(SHADES, curves, strict=False):
                plot_loss_gap(axis, theory, color=color, label=slice_name(parameter, value))
                gap = loss_gap(squeeze_parameter(runs)["train_loss"], "start")
                plot_seed_means(axis, gap, fmt="D", color=color, ms=4, mec=ink_color(), mew=0.4)
            axis.set_xlabel(ALPHA)
            axis.legend(loc="best")
        use_scientific_ticks(*axes)
        axes[0].set_ylabel(LOSS_GAP)
        add_theory_legend(figure, axes[0], runs)
    return figure


def slice_name(parameter: str, value: float) -> str:
    """Parameter and value in symbols."""
    return rf"${SYMBOLS[parameter]} = {value:g}$"


def add_theory_legend(figure: Any, axis: Any, runs: xr.Dataset) -> None:
    """Key of the marks that do not belong to one panel."""
    known = len(axis.get_legend_handles_labels()[0]) if axis.get_legend() else 0
    add_theory_entries(axis, RS_MINIMA, runs)
    add_hollow_entry(axis)
    add_saddle_entry(axis)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles[known:], labels[known:], loc="outside upper center", ncols=3)
