"""The transition: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import (
    ALPHA,
    DESCENT,
    LOSS_GAP,
    MINIMA,
    OWN,
    SCALED,
    TEST_ERROR,
    at_one_value,
    branch_line,
    gap_line,
    hollow_entry,
    is_saddle,
    linear_level,
    loss_gap,
    overlap_scale,
    saddle_entry,
    scientific,
    seed_points,
)
from dotphase.figures.parts.style import COLOURS, MARKERS, drawing, ink

#: Look of the other theory, where there are two.
MINIMUM: dict[str, Any] = {"ls": (0, (3, 2)), "lw": 1.0}


def transition(
    theory: xr.Dataset,
    critical: Mapping[Any, Any],
    runs: xr.Dataset | None = None,
    path: str | Path | None = None,
    ends: xr.Dataset | None = None,
) -> Any:
    """Theory as lines, trained students as points, alpha_c and alpha_l as vertical lines.

    With `ends` there are two theories: full lines are where gradient descent has come to in the
    limit of large d, dashed ones the minima of replica-symmetric theory.

    Parameters
    ----------
    theory : xarray.Dataset
        From `dotphase.curve`, with the semantic and the positional branch.
    critical : mapping or xarray.Dataset
        ``alpha_c``, ``alpha_l`` and ``linear_test_error``.
    runs : xarray.Dataset, optional
        From `dotphase.grid`, at one value.
    ends : xarray.Dataset, optional
        From `dotphase.curve` with ``engine="dynamics"``.

    Examples
    --------
    >>> branches = dp.curve(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> known = {"alpha_c": 1.251, "alpha_l": 1.494, "linear_test_error": 0.00197}
    >>> figure = dp.plot.transition(branches, known, runs, "transition.png")
    """
    theory, scale = theory.sortby("alpha"), overlap_scale(theory)
    runs = None if runs is None else at_one_value(runs)
    with drawing(path, 1, 3, size=(10.4, 3.4)) as (figure, axes):
        difference, overlap, error = axes
        _difference(difference, theory, runs, ends)
        for name in OWN:
            branch, colour = theory.sel(branch=name), COLOURS[name]
            shown = (
                (overlap, OWN[name], scale, f"{SCALED[OWN[name]]}, {name}"),
                (error, "test_error", 1.0, name),
            )
            for axis, part, size, label in shown:
                hollow = {"marker": MARKERS[name], "ms": 4}
                style: dict[str, Any] = {"color": colour, "label": label}
                if ends is not None:
                    end = ends.sortby("alpha").sel(branch=name)
                    branch_line(axis, end, end[part] / size, hollow=hollow, **style)
                    style = {"color": colour} | MINIMUM
                branch_line(axis, branch, branch[part] / size, hollow=hollow, **style)
                if runs is not None:
                    seed_points(
                        axis, runs[part].sel(start=name) / size, fmt=MARKERS[name], ms=5,
                        color=colour, mec=ink(), mew=0.6,
                    )  # fmt: skip
        linear_level(error, critical["linear_test_error"], "linear layer")
        if bool(is_saddle(theory).any()):
            saddle_entry(error)
        for axis in axes:
            for name, dashes in (("alpha_c", "-"), ("alpha_l", ":")):
                place = float(critical[name])
                if np.isfinite(place):
                    text = rf"$\{name} = {place:.3f}$" if axis is difference else None
                    axis.axvline(place, color=ink(), lw=1, ls=dashes, label=text)
        scientific(difference, error)
        overlap.set_ylim(bottom=0)
        error.set_ylim(bottom=0)
        for axis, text in zip(axes, (LOSS_GAP, "overlaps", TEST_ERROR), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text)
            axis.legend(loc="best")
    return figure


def _difference(
    axis: Any, theory: xr.Dataset, runs: xr.Dataset | None, ends: xr.Dataset | None
) -> None:
    colour = COLOURS["mixed"]
    style: dict[str, Any] = {"color": colour, "label": MINIMA}
    axis.axhline(0, color=ink(), lw=0.7)
    if ends is not None:
        reached = loss_gap(ends.sortby("alpha")["train_loss"], "branch")
        axis.plot(reached["alpha"], reached, color=colour, label=DESCENT)
        style |= MINIMUM
    if gap_line(axis, theory, **style):
        hollow_entry(axis, colour=colour)
    if runs is not None:
        label = f"training, $d = {runs.attrs['d']}$"
        trained = loss_gap(runs["train_loss"], "start")
        seed_points(axis, trained, label=label, fmt="D", ms=4, color=ink(), lw=1.6)
