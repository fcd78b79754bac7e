"""Longer sentences: critical points against the length, and the overlaps at each length."""

from __future__ import annotations

from collections.abc import Sequence
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
    page_color,
    squeeze_parameter,
)
from reproduction.figures.overlap_slices import plot_overlaps
from reproduction.figures.slices import add_theory_legend


def plot_lengths(
    members: Sequence[tuple[str, xr.Dataset, xr.Dataset]],
    lines: xr.Dataset,
    path: str | Path | None = None,
) -> Any:
    """Critical points against the length, then a panel with both overlaps for each length.

    Parameters
    ----------
    members : sequence of (label, theory, runs)
        For each length its label, the theory of `dotphase.curve` and the runs of
        `dotphase.grid` at one value.
    lines : xarray.Dataset
        ``alpha_c`` and ``alpha_l`` over ``length``, with errors, and ``trained`` crossings.
    """
    columns = -(-(1 + len(members)) // 2)
    with new_figure(path, 2, columns, size=(3.4 * columns, 6.2), squeeze=False) as (figure, axes):
        panels = list(axes.flat)
        _against_length(panels[0], lines)
        for axis, (label, theory, runs) in zip(panels[1:], members, strict=False):
            plot_overlaps(axis, theory, squeeze_parameter(runs))
            axis.set(title=label, xlabel=ALPHA)
        for axis in panels[1 + len(members) :]:
            axis.set_axis_off()
        panels[1].set_ylabel(OVERLAPS)
        for name in ORDER_PARAMETERS:
            panels[1].plot([], [], color=COLORS[name], marker=MARKERS[name], label=name)
        add_theory_legend(figure, panels[1], members[0][2])
    return figure


def _against_length(axis: Any, lines: xr.Dataset) -> None:
    length = lines["length"].values
    trusted = lines["trusted"].values.astype(bool)
    for name, color, marker in (("alpha_l", COLORS["linear"], "^"), ("alpha_c", ink_color(), "o")):
        values, error = lines[name].values, lines[f"{name}_stderr"].values
        label = rf"$\{name}$, replica symmetric"
        axis.errorbar(length, values, error, color=color, lw=1.4, label=label)
        for chosen, face in ((trusted, color), (~trusted, page_color())):
            axis.plot(length[chosen], values[chosen], marker, color=color, mfc=face, ms=6)
    axis.errorbar(
        length + 0.08, lines["trained"], lines["trained_stderr"], fmt="D", ms=5, lw=1,
        color=COLORS["mixed"], label=r"$\alpha_c$, training",
    )  # fmt: skip
    axis.set(xlabel="tokens $L$ in a sentence", ylabel="critical sample complexity")
    axis.set(xticks=length, ylim=(0, None))
    axis.legend()
