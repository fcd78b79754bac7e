"""Several models side by side: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    COLORS,
    LOSS_GAP,
    OVERLAPS,
    TEST_ERROR,
    add_slice_entries,
    ink_color,
    label_slice,
    new_figure,
    page_color,
    plot_slice,
)

#: Colors of Okabe and Ito for the members of a family, in their order.
SHADES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7F7F7F")


def plot_family(
    members: Sequence[tuple[str, xr.Dataset, xr.Dataset]],
    lines: xr.Dataset | None = None,
    path: str | Path | None = None,
) -> Any:
    """Draw theory as lines, hollow if it is not trusted, and trained students as points.

    Parameters
    ----------
    members : sequence of (label, theory, runs)
        For each model its label, the theory of `dotphase.curve` and the runs of
        `dotphase.grid` at one value.
    lines : xarray.Dataset, optional
        ``alpha_c`` and ``alpha_l`` over ``length``, with errors, and ``trained`` crossings: one
        more panel.
    """
    rows, columns, size = (1, 3, (10.4, 3.4)) if lines is None else (2, 2, (8.6, 6.6))
    with new_figure(path, rows, columns, size=size) as (figure, axes):
        panels = axes.ravel()[-3:]
        if lines is not None:
            _against_length(axes[0, 0], lines)
        for shade, (label, theory, runs) in zip(SHADES, members, strict=False):
            plot_slice(panels, theory, runs, shade, label)
        label_slice(panels)
        for panel, text in zip(panels, (LOSS_GAP, OVERLAPS, TEST_ERROR), strict=True):
            panel.set(xlabel=ALPHA, ylabel=text)
        panels[0].legend()
        # One legend outside the panels for the styles that are not colors.
        add_slice_entries(panels[1], members[0][2])
        handles = panels[1].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=3)
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
