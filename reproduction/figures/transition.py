"""The transition: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    COLORS,
    GRADIENT_DESCENT,
    LOSS_GAP,
    MARKERS,
    ORDER_PARAMETERS,
    OVERLAP_LABELS,
    RS_MINIMA,
    TEST_ERROR,
    add_hollow_entry,
    add_saddle_entry,
    ink_color,
    is_saddle,
    loss_gap,
    new_figure,
    overlap_scale,
    plot_branch,
    plot_linear_baseline,
    plot_loss_gap,
    plot_seed_means,
    squeeze_parameter,
    use_scientific_ticks,
)

#: Style of replica-symmetric minima next to the theory of gradient descent.
MINIMUM: dict[str, Any] = {"ls": (0, (3, 2)), "lw": 1.0}


def plot_transition(
    theory: xr.Dataset,
    critical: Mapping[Any, Any],
    runs: xr.Dataset | None = None,
    path: str | Path | None = None,
    ends: xr.Dataset | None = None,
) -> Any:
    """Theory as lines, trained students as points, alpha_c and alpha_l as vertical lines.

    With `ends` there are two theories. Full lines are the ends of gradient descent in the limit of
    large d, dashed lines the minima of replica-symmetric theory.

    Parameters
    ----------
    theory : xarray.Dataset
        From `dotphase.curve`, with the semantic and the positional branch.
    critical : mapping or xarray.Dataset
        ``alpha_c``, ``alpha_l`` and ``linear_test_error``.
    runs : xarray.Dataset, optional
        From `dotphase.grid`, at one value.
    ends : xarray.Dataset, optional
        From `dotphase.curve` with ``theory="dynamics"``.
    """
    theory, scale = theory.sortby("alpha"), overlap_scale(theory)
    runs = None if runs is None else squeeze_parameter(runs)
    with new_figure(path, 1, 3, size=(10.4, 3.4)) as (figure, axes):
        difference, overlap, error = axes
        _difference(difference, theory, runs, ends)
        for name in ORDER_PARAMETERS:
            branch, color = theory.sel(branch=name), COLORS[name]
            panels = (
                (
                    overlap,
                    ORDER_PARAMETERS[name],
                    scale,
                    f"{OVERLAP_LABELS[ORDER_PARAMETERS[name]]}, {name}",
                ),
                (error, "test_error", 1.0, name),
            )
            for axis, quantity, size, label in panels:
                hollow = {"marker": MARKERS[name], "ms": 4}
                style: dict[str, Any] = {"color": color, "label": label}
                if ends is not None:
                    end = ends.sortby("alpha").sel(branch=name)
                    plot_branch(axis, end, end[quantity] / size, hollow=hollow, **style)
                    style = {"color": color} | MINIMUM
                plot_branch(axis, branch, branch[quantity] / size, hollow=hollow, **style)
                if runs is not None:
                    plot_seed_means(
                        axis, runs[quantity].sel(start=name) / size, fmt=MARKERS[name], ms=5,
                        color=color, mec=ink_color(), mew=0.6,
                    )  # fmt: skip
        plot_linear_baseline(error, critical["linear_test_error"], "linear layer")
        if bool(is_saddle(theory).any()):
            add_saddle_entry(error)
        for axis in axes:
            for name, dashes in (("alpha_c", "-"), ("alpha_l", ":")):
                alpha = float(critical[name])
                if np.isfinite(alpha):
                    text = rf"$\{name} = {alpha:.3f}$" if axis is difference else None
                    axis.axvline(alpha, color=ink_color(), lw=1, ls=dashes, label=text)
        use_scientific_ticks(difference, error)
        overlap.set_ylim(bottom=0)
        error.set_ylim(bottom=0)
        for axis, text in zip(axes, (LOSS_GAP, "overlaps", TEST_ERROR), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text)
            axis.legend(loc="best")
    return figure


def _difference(
    axis: Any, theory: xr.Dataset, runs: xr.Dataset | None, ends: xr.Dataset | None
) -> None:
    color = COLORS["mixed"]
    style: dict[str, Any] = {"color": color, "label": RS_MINIMA}
    axis.axhline(0, color=ink_color(), lw=0.7)
    if ends is not None:
        reached = loss_gap(ends.sortby("alpha")["train_loss"], "branch")
        axis.plot(reached["alpha"], reached, color=color, label=GRADIENT_DESCENT)
        style |= MINIMUM
    if plot_loss_gap(axis, theory, **style):
        add_hollow_entry(axis, color=color)
    if runs is not None:
        label = f"training, $d = {runs.attrs['d']}$"
        trained = loss_gap(runs["train_loss"], "start")
        plot_seed_means(axis, trained, label=label, fmt="D", ms=4, color=ink_color(), lw=1.6)
