"""Ends of gradient descent for several models: theory, minima, trained students."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    GRADIENT_DESCENT,
    MARKERS,
    RS_MINIMA,
    ink_color,
    new_figure,
    overlap_scale,
    plot_branch,
    plot_seed_means,
    squeeze_parameter,
)

#: Colors of Okabe and Ito for the members of a column.
SHADES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
#: Overlap and axis label of each start.
ROWS = {
    "semantic": ("theta", r"semantic start: $\theta/\sigma^2$"),
    "positional": ("m", "positional start: $|m|$"),
}

Member = tuple[str, xr.Dataset, xr.Dataset, xr.Dataset]


def plot_descent_limits(
    columns: Mapping[str, Sequence[Member]], path: str | Path | None = None
) -> Any:
    """Overlaps that gradient descent reaches against alpha, from both starts.

    Full lines: the dynamics in the limit of large d. Dashed lines: minima of replica-symmetric
    theory. Points: students trained with the same steps.

    Parameters
    ----------
    columns : mapping
        By title, at most five models each: a label, minima of `dotphase.curve`, ends of
        `dotphase.curve` with ``theory="dynamics"``, and runs of `dotphase.grid` at one value.
    """
    size = (0.6 + 3.3 * len(columns), 5.6)
    with new_figure(path, 2, len(columns), size=size, sharex="col", squeeze=False) as (
        figure,
        axes,
    ):
        for column, (title, members) in zip(axes.T, columns.items(), strict=True):
            for color, (label, minima, ends, runs) in zip(SHADES, members, strict=False):
                for axis, (start, (overlap, _)) in zip(column, ROWS.items(), strict=True):
                    scale = overlap_scale(ends) if overlap == "theta" else 1.0
                    hollow = {"marker": MARKERS[start], "ms": 3.5}
                    end = ends.sortby("alpha").sel(branch=start)
                    plot_branch(
                        axis, end, end[overlap] / scale, hollow=hollow, color=color, label=label
                    )
                    branch = minima.sortby("alpha").sel(branch=start)
                    values = branch[overlap].where(branch["on_branch"].astype(bool)) / scale
                    axis.plot(branch["alpha"], values, color=color, ls=(0, (3, 2)), lw=1.0)
                    trained = squeeze_parameter(runs)[overlap].sel(start=start) / scale
                    style = {"fmt": MARKERS[start], "ms": 4.5, "mec": ink_color(), "mew": 0.5}
                    plot_seed_means(axis, trained, color=color, **style)
            column[0].set_title(title)
            column[0].legend()
            column[1].set_xlabel(ALPHA)
            for axis in column:
                axis.set_ylim(bottom=0)
        for axis, (_, text) in zip(axes[:, 0], ROWS.values(), strict=True):
            axis.set_ylabel(text)
        legend_axis = axes[1, 0]
        legend_axis.plot([], [], color=ink_color(), label=GRADIENT_DESCENT)
        legend_axis.plot([], [], color=ink_color(), ls=(0, (3, 2)), lw=1.0, label=RS_MINIMA)
        legend_axis.plot([], [], "s", color=ink_color(), ls="none", label="trained students")
        legend_axis.legend(handles=legend_axis.get_legend_handles_labels()[0][-3:])
    return figure
