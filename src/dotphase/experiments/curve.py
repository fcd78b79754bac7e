"""Branches against alpha, as a labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.experiments.crossing import last_crossing
from dotphase.model import Model
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_in_alpha

#: Precision of a curve: finer than a line in a plot, coarse enough to be quick.
RTOL, MOST = 1e-2, 14

_DESCRIPTIONS = {
    "q": "norm of q of token 1",
    "m": "norm of m of token 1",
    "V": "norm of V of token 1",
    "theta": "norm of theta of token 1",
    "train_loss": "training loss per dimension, eps_t",
    "test_error": "test error, eps_g",
    "loss_slope": "derivative of the training loss in alpha",
}


def curve(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str] = ("semantic", "positional"),
    *,
    rtol: float = RTOL,
    log2_points: int | None = None,
    most: int = MOST,
    seed: int = 0,
    progress: Callable[[Solution], None] | None = None,
) -> xr.Dataset:
    """Follow branches along alpha.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities, in any order, no two the same.
    branches : sequence of str
        Branches to follow.
    rtol, log2_points, most, seed
        As for `dotphase.solve`; coarser by default, since a curve is looked at.
    progress : callable, optional
        Called with each solution as it is finished.

    Returns
    -------
    xarray.Dataset
        Dimensions ``branch`` and ``alpha``; every result with its ``_stderr``. Where
        ``on_branch`` is false there is no such branch (then ``converged`` is true, and the
        values are those of the fixed point found instead) or the solver found nothing (then it
        is false, and the values mean nothing). ``crossing`` is the alpha at which the training
        losses of the semantic and positional branches cross, NaN if they do not on this grid.
    """
    grid = np.asarray(alphas, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or np.unique(grid).size != grid.size:
        raise InvalidInput("alphas", alphas, "must be one or more different numbers > 0")
    names = list(branches)
    if not names or len(set(names)) != len(names) or not set(names) <= set(BRANCHES):
        raise InvalidInput("branches", names, "must be different ones of " + ", ".join(BRANCHES))
    attributes = provenance(
        model, alphas=grid, branches=names, rtol=rtol, log2_points=log2_points, most=most, seed=seed
    )
    found = continue_in_alpha(
        model,
        grid.tolist(),
        names,
        rtol=rtol,
        log2_points=log2_points,
        most=most,
        seed=seed,
        progress=progress,
    )
    rows = [found[name] for name in names]
    dataset = xr.Dataset(coords={"branch": names, "alpha": grid}, attrs=attributes)
    dataset["alpha"].attrs["description"] = "sample complexity n/d"

    def fill(name: str, read: Callable[[Solution], Any], description: str) -> None:
        values = [[read(solution) for solution in row] for row in rows]
        dataset[name] = (("branch", "alpha"), values, {"description": description})

    for name, description in _DESCRIPTIONS.items():
        fill(name, methodcaller("value", name), description)
        if name != "loss_slope":
            fill(f"{name}_stderr", partial(_error, name), "quadrature standard error")
    fill("found", lambda s: s.found, "branch that the fixed point belongs to")
    fill("on_branch", lambda s: s.there, "whether it is the branch asked for")
    fill("converged", lambda s: s.converged, "whether the solver converged")
    fill("residual", lambda s: s.residual, "undamped relative residual")
    fill("iterations", lambda s: s.iterations, "evaluations of the map")
    fill("log2_points", lambda s: s.log2_points, "log2 of the Gaussian points")
    fill("replicon", lambda s: s.stability.replicon, "stable below 1")
    fill("jump_weight", lambda s: s.stability.jump_weight, "weight of the jumps")
    fill("trusted", lambda s: s.stability.trusted, "whether the theory can be trusted here")
    dataset["linear_test_error"] = rows[0][0].linear_test_error
    dataset["linear_test_error"].attrs["description"] = "test error of the linear layer"
    crossing, error = crossing_of(dataset)
    dataset["crossing"], dataset["crossing_stderr"] = crossing, error
    dataset["crossing"].attrs["description"] = "alpha where the training losses cross"
    return dataset


def _error(name: str, solution: Solution) -> float:
    return solution.stderr[name]


def crossing_of(dataset: xr.Dataset) -> tuple[float, float]:
    """Where the semantic training loss falls below the positional one, and its error.

    Interpolated with the known slopes of the losses between the two grid points that enclose
    the crossing; NaN where the curve does not hold both branches or they do not cross.
    """
    if not {"semantic", "positional"} <= set(dataset["branch"].values.tolist()):
        return np.nan, np.nan
    ordered = dataset.sortby("alpha")
    pair = [ordered.sel(branch=name) for name in ("semantic", "positional")]
    valid = (pair[0]["on_branch"] & pair[1]["on_branch"]).values
    alpha = ordered["alpha"].values[valid]
    gap = (pair[0]["train_loss"] - pair[1]["train_loss"]).values[valid]
    slope = (pair[0]["loss_slope"] - pair[1]["loss_slope"]).values[valid]
    error = np.hypot(*(part["train_loss_stderr"].values[valid] for part in pair))
    found = last_crossing(alpha, gap, slope)
    if found is None:
        return np.nan, np.nan
    crossing, left = found
    steepness = (gap[left + 1] - gap[left]) / (alpha[left + 1] - alpha[left])
    return crossing, float(np.max(error[left : left + 2]) / abs(steepness))
