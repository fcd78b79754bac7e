"""Test errors of attention beside those of other learners, against alpha."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts.lines import ALPHA, TEST_ERROR, linear_level, seed_points
from dotphase.figures.parts.style import COLOURS, drawing, ink

#: Look of each learner: colour, marker and line.
LOOKS = {
    "attention, semantic start": (COLOURS["semantic"], "o", "-"),
    "attention, positional start": (COLOURS["positional"], "s", "-"),
    "attention without positions": (COLOURS["random"], "^", "--"),
    "attention on positions only": (COLOURS["bayes"], "v", "--"),
    "perceptron on positions": (COLOURS["mixed"], "P", ":"),
    "perceptron on tokens": (COLOURS["uninformed"], "D", "-"),
    "kernel ridge regression": (COLOURS["linear"], "X", "-"),
}


def baselines(errors: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw test errors of several learners on the same data sets.

    Parameters
    ----------
    errors : xarray.Dataset
        ``test_error`` over ``learner``, ``alpha`` and ``seed``, with the ``linear_limit``.

    Examples
    --------
    >>> import xarray as xr
    >>> over = ("learner", "alpha", "seed")
    >>> errors = xr.Dataset({"test_error": (over, [[[0.002, 0.003]]]), "linear_limit": 0.002})
    >>> errors = errors.assign_coords(learner=["perceptron on tokens"], alpha=[2.0])
    >>> figure = dp.plot.baselines(errors.assign_attrs(d=40), "baselines.png")
    """
    with drawing(path, size=(6.6, 4.0)) as (figure, axis):
        linear_level(axis, errors["linear_limit"])
        for name in errors["learner"].values.tolist():
            colour, marker, dashes = LOOKS.get(name.partition(", $")[0], (ink(), ".", "-"))
            values = errors["test_error"].sel(learner=name)
            style = {"color": colour, "marker": marker, "ls": dashes, "label": name}
            seed_points(axis, values, **style)
        axis.set(xscale="log", yscale="log", xlabel=ALPHA, ylabel=TEST_ERROR)
        alphas = errors["alpha"].values
        axis.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
        axis.set_xticks([], minor=True)
        axis.set_title(f"$d = {errors.attrs['d']}$, {errors.sizes['seed']} data sets a point")
        figure.legend(loc="outside right upper")
    return figure
