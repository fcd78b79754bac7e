"""Several models side by side: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    LOSS_GAP,
    OVERLAPS,
    TEST_ERROR,
    add_slice_entries,
    label_slice,
    new_figure,
    plot_slice,
)

#: Colors of the members of a family, in their order; blue and orange are the branches.
SHADES = ("#009E73", "#CC79A7", "#7F7F7F", "#B79F00")


def plot_family(
    members: Sequence[tuple[str, xr.Dataset, xr.Dataset]], path: str | Path | None = None
) -> Any:
    """Draw theory as lines, hollow if it is not trusted, and trained students as points.

    Parameters
    ----------
    members : sequence of (label, theory, runs)
        For each model its label, the theory of `dotphase.curve` and the runs of
        `dotphase.grid` at one value.
    """
    with new_figure(path, 1, 3, size=(10.4, 3.4)) as (figure, panels):
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
