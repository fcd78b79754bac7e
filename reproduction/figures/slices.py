"""Slices through the phase diagram: loss differences, and the overlaps of each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    COLORS,
    LOSS_GAP,
    MARKERS,
    ORDER_PARAMETERS,
    OVERLAPS,
    RS_MINIMA,
    SYMBOLS,
    add_hollow_entry,
    add_saddle_entry,
    add_theory_entries,
    ink_color,
    loss_gap,
    new_figure,
    overlap_scale,
    plot_branch,
    plot_loss_gap,
    plot_seed_means,
    squeeze_parameter,
    use_scientific_ticks,
)

#: Colors for the values of a parameter: neither blue nor orange, which are the branches.
SHADES = ("#009E73", "#7F7F7F", "#CC79A7", "#B79F00")

Slice = tuple[float, xr.Dataset, xr.Dataset]


def plot_loss_slices(columns: Mapping[str, Sequence[Slice]]) -> Any:
    """Loss difference against alpha, a panel for each parameter and a color for each value.

    Parameters
    ----------
    columns : mapping
        For each parameter its values, at most four, each with the theory of `dotphase.curve`
        and the runs of `dotphase.grid` at one value.
    """
    with new_figure(None, 1, len(columns), size=(3.5 * len(columns), 3.6)) as (figure, axes):
        for axis, (parameter, curves) in zip(axes, columns.items(), strict=True):
            axis.axhline(0, color=ink_color(), lw=0.7)
            for color, (value, theory, runs) in zip(SHADES, curves, strict=False):
                plot_loss_gap(axis, theory, color=color, label=_name(parameter, value))
                gap = loss_gap(squeeze_parameter(runs)["train_loss"], "start")
                plot_seed_means(axis, gap, fmt="D", color=color, ms=4, mec=ink_color(), mew=0.4)
            axis.set_xlabel(ALPHA)
            axis.legend(loc="best")
        use_scientific_ticks(*axes)
        axes[0].set_ylabel(LOSS_GAP)
        _add_legend(figure, axes[0], runs)
    return figure


def plot_overlap_slices(columns: Mapping[str, Sequence[Slice]]) -> Any:
    """Overlaps of both branches against alpha, a panel for each model."""
    width = max(map(len, columns.values()))
    size = (2.6 * width, 2.3 * len(columns) + 0.6)
    with new_figure(None, len(columns), width, size=size, sharex=True) as (figure, axes):
        for row, (parameter, curves) in zip(axes, columns.items(), strict=True):
            for axis in row[len(curves) :]:
                axis.set_axis_off()
            for axis, (value, theory, runs) in zip(row, curves, strict=False):
                _plot_overlaps(axis, theory, squeeze_parameter(runs))
                axis.set_title(_name(parameter, value), fontsize="medium")
        for axis in axes[-1]:
            axis.set_xlabel(ALPHA)
        axes[1, 0].set_ylabel(OVERLAPS)
        for name, color in (("semantic", COLORS["semantic"]), ("positional", COLORS["positional"])):
            axes[0, 0].plot([], [], color=color, marker=MARKERS[name], label=name)
        _add_legend(figure, axes[0, 0], runs)
    return figure


def _plot_overlaps(axis: Any, theory: xr.Dataset, runs: xr.Dataset) -> None:
    """Theta of the semantic and m of the positional branch, in theory and trained."""
    theory, scale = theory.sortby("alpha"), overlap_scale(theory)
    for name, overlap in ORDER_PARAMETERS.items():
        branch, color, marker = theory.sel(branch=name), COLORS[name], MARKERS[name]
        hollow = {"marker": marker, "ms": 3.5}
        plot_branch(axis, branch, branch[overlap] / scale, hollow=hollow, color=color)
        trained = runs[overlap].sel(start=name) / scale
        plot_seed_means(axis, trained, fmt=marker, color=color, ms=3.5, mec=ink_color(), mew=0.4)
    axis.set_ylim(bottom=0)


def _name(parameter: str, value: float) -> str:
    return rf"${SYMBOLS[parameter]} = {value:g}$"


def _add_legend(figure: Any, axis: Any, runs: xr.Dataset) -> None:
    """Key of the marks that do not belong to one panel."""
    known = len(axis.get_legend_handles_labels()[0]) if axis.get_legend() else 0
    add_theory_entries(axis, RS_MINIMA, runs)
    add_hollow_entry(axis)
    add_saddle_entry(axis)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles[known:], labels[known:], loc="outside upper center", ncols=3)
