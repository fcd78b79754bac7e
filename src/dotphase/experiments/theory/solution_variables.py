"""Solutions of the theory as variables of a labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dotphase.theory.solution import Solution

#: Results with a quadrature error, by the names they have in a `Solution`.
RESULTS = {
    "q": "norm of q of token 1",
    "m": "norm of m of token 1",
    "V": "norm of V of token 1",
    "theta": "norm of theta of token 1",
    "train_loss": "training loss per dimension, eps_t",
    "test_error": "test error, eps_g",
}

#: What else is kept of a solution.
FACTS: dict[str, tuple[Callable[[Solution], Any], str]] = {
    "loss_slope": (lambda s: s.loss_slope, "derivative of the training loss in alpha"),
    "found": (lambda s: s.found, "branch that the fixed point belongs to"),
    "on_branch": (lambda s: s.on_branch, "whether it is the branch asked for"),
    "converged": (lambda s: s.converged, "whether the solver converged"),
    "residual": (lambda s: s.residual, "undamped relative residual"),
    "iterations": (lambda s: s.iterations, "evaluations of the map"),
    "log2_points": (lambda s: s.log2_points, "log2 of the Gaussian points"),
    "kind": (lambda s: s.stability.kind if s.on_branch else "missing",
             "minimum, saddle, marginal (cannot be told), unknown, or missing"),
    "multiplier_theta": (lambda s: s.stability.multipliers.get("theta", np.nan),
                         "of a small change of theta by one step; above 1 at a saddle"),
    "multiplier_m": (lambda s: s.stability.multipliers.get("m", np.nan),
                     "of a small change of m by one step; above 1 at a saddle"),
    "replicon": (lambda s: s.stability.replicon, "stable below 1"),
    "jump_weight": (lambda s: s.stability.jump_weight, "weight of the jumps"),
    "model_error": (lambda s: _model_error(s),
                    "largest relative change of loss and overlaps by symmetry breaking, estimated"),
    "trusted": (lambda s: s.stability.trusted, "whether the theory can be trusted here"),
}  # fmt: skip


def _model_error(solution: Solution) -> float:
    """The largest relative model error of the training loss and of the overlaps that are there."""
    names = [name for name in ("train_loss", "theta", "m") if solution.value(name) > 0]
    return max(solution.model_error.get(name, np.nan) / solution.value(name) for name in names)


def variables(
    solutions: Iterable[Solution], dims: Sequence[str], shape: Sequence[int]
) -> dict[str, xr.Variable]:
    """Everything that a dataset keeps of its solutions, which have the last dimension fastest."""
    cells = list(solutions)

    def variable(values: Sequence[Any], description: str) -> xr.Variable:
        array = np.asarray(values).reshape(tuple(shape))
        return xr.Variable(dims, array, {"description": description})

    found = {}
    for name, description in RESULTS.items():
        found[name] = variable([cell.value(name) for cell in cells], description)
        errors = [cell.stderr[name] for cell in cells]
        found[f"{name}_stderr"] = variable(errors, "quadrature standard error")
    for name, (read, description) in FACTS.items():
        found[name] = variable([read(cell) for cell in cells], description)
    return found


def is_minimum(branch: xr.Dataset) -> xr.DataArray:
    """Where a branch is there and nothing says that it is a saddle."""
    there = branch["on_branch"].astype(bool)
    return there & (branch["kind"] != "saddle") if "kind" in branch else there
