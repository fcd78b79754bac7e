"""Test errors of attention and of other learners against alpha."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    COLORS,
    TEST_ERROR,
    ink_color,
    new_figure,
    plot_linear_baseline,
    plot_seed_means,
)

#: Look of each learner: color, marker and line.
LOOKS = {
    "attention, semantic start": (COLORS["semantic"], "o", "-"),
    "attention, positional start": (COLORS["positional"], "s", "-"),
    "attention without positions": (COLORS["random"], "^", "--"),
    "attention on positions only": (COLORS["bayes"], "v", "--"),
    "perceptron on positions": (COLORS["mixed"], "P", ":"),
    "perceptron on tokens": (COLORS["uninformed"], "D", "-"),
    "kernel ridge regression": (COLORS["linear"], "X", "-"),
}


def plot_baselines(errors: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw test errors of several learners on the same data sets.

    Parameters
    ----------
    errors : xarray.Dataset
        ``test_error`` over ``learner``, ``alpha`` and ``seed``, with the ``linear_limit``.
    """
    with new_figure(path, size=(6.6, 4.0)) as (figure, axis):
        plot_linear_baseline(axis, errors["linear_limit"])
        for name in errors["learner"].values.tolist():
            color, marker, dashes = LOOKS.get(name.partition(", $")[0], (ink_color(), ".", "-"))
            values = errors["test_error"].sel(learner=name)
            style = {"color": color, "marker": marker, "ls": dashes, "label": name}
            plot_seed_means(axis, values, **style)
        axis.set(xscale="log", yscale="log", xlabel=ALPHA, ylabel=TEST_ERROR)
        alphas = errors["alpha"].values
        axis.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
        axis.set_xticks([], minor=True)
        axis.set_title(f"$d = {errors.attrs['d']}$, {errors.sizes['seed']} data sets a point")
        figure.legend(loc="outside right upper")
    return figure
