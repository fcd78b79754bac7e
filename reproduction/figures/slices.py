"""Slices through the phase diagram, a column for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    LOSS_GAP,
    OVERLAPS,
    SYMBOLS,
    TEST_ERROR,
    add_slice_entries,
    label_slice,
    new_figure,
    plot_slice,
)

#: Colors of Okabe and Ito for the values of a parameter.
SHADES = ("#56B4E9", "#0072B2", "#CC79A7", "#E69F00")

Slice = tuple[float, xr.Dataset, xr.Dataset]


def plot_slices(columns: Mapping[str, Sequence[Slice]], path: str | Path | None = None) -> Any:
    """Loss difference, overlaps and test error against alpha for several values of a parameter.

    Parameters
    ----------
    columns : mapping
        For each parameter its values, at most four, each with the theory of `dotphase.curve`
        and the runs of `dotphase.grid` at one value.
    """
    size = (3.5 * len(columns), 8.2)
    with new_figure(path, 3, len(columns), size=size, sharex=True, squeeze=False) as (
        figure,
        axes,
    ):
        for column, (parameter, curves) in zip(axes.T, columns.items(), strict=True):
            for color, (value, theory, runs) in zip(SHADES, curves, strict=False):
                label = rf"${SYMBOLS.get(parameter, parameter)} = {value:g}$"
                plot_slice(column, theory, runs, color, label)
            label_slice(column)
            column[0].legend()
            column[2].set_xlabel(ALPHA)
        for axis, text in zip(axes[:, 0], (LOSS_GAP, OVERLAPS, TEST_ERROR), strict=True):
            axis.set_ylabel(text)
        overlap_axis = axes[1, 0]
        add_slice_entries(overlap_axis, runs)
        overlap_axis.plot([], [], " ", label="lines end where a branch ends")
        figure.legend(
            *overlap_axis.get_legend_handles_labels(), loc="outside upper center", ncols=4
        )
    return figure
