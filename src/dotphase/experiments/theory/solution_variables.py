"""Solutions of the theory as variables of a labeled dataset."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dotphase.theory.solution import Solution

#: Results with a quadrature error, by their names in a `Solution`.
RESULTS = {
    "q": "norm of q of token 1",
    "m": "norm of m of token 1",
    "V": "norm of V of token 1",
    "theta": "norm of theta of token 1",
    "train_loss": "training loss per dimension, eps_t",
    "test_error": "test error, eps_g",
}

#: Other properties of a solution: a function that reads each, and its description.
FACTS: dict[str, tuple[Callable[[Solution], Any], str]] = {
    "loss_slope": (lambda s: s.loss_slope, "derivative of the training loss in alpha"),
    "found": (lambda s: s.found, "branch that the fixed point belongs to"),
    "on_branch": (lambda s: s.on_branch, "true if converged on the requested branch"),
    "converged": (lambda s: s.converged, "true if the solver converged"),
    "residual": (lambda s: s.residual, "undamped relative residual"),
    "iterations": (lambda s: s.iterations, "evaluations of the map"),
    "log2_points": (lambda s: s.log2_points, "log2 of the Gaussian points"),
    "kind": (lambda s: s.stability.kind if s.on_branch else "missing",
             "minimum, saddle, marginal (undecided), unknown, or missing"),
    "multiplier_theta": (lambda s: s.stability.multipliers.get("theta", np.nan),
                         "factor of a small change of theta in one step; above 1 at a saddle"),
    "multiplier_m": (lambda s: s.stability.multipliers.get("m", np.nan),
                     "factor of a small change of m in one step; above 1 at a saddle"),
    "replicon": (lambda s: s.stability.replicon, "stable below 1"),
    "jump_weight": (lambda s: s.stability.jump_weight, "weight of the jumps"),
    "model_error": (lambda s: _model_error(s),
                    "estimate of the largest relative change by symmetry breaking"),
    "trusted": (lambda s: s.stability.trusted, "true if the theory can be trusted"),
}  # fmt: skip


def _model_error(solution: Solution) -> float:
    """The largest relative model error of the training loss and of the overlaps above zero."""
    names = [name for name in ("train_loss", "theta", "m") if solution.value(name) > 0]
    return max(solution.model_error.get(name, np.nan) / solution.value(name) for name in names)


def variables(
    solutions: Iterable[Solution], dims: Sequence[str], shape: Sequence[int]
) -> dict[str, xr.Variable]:
    """Variables of the solutions, in the order of `dims` with the last dimension fastest."""
    cells = list(solutions)

    def variable(values: Sequence[Any], description: str) -> xr.Variable:
        array = np.asarray(values).reshape(tuple(shape))
        return xr.Variable(dims, array, {"description": description})

    columns = {}
    for name, description in RESULTS.items():
        columns[name] = variable([cell.value(name) for cell in cells], description)
        errors = [cell.stderr[name] for cell in cells]
        columns[f"{name}_stderr"] = variable(errors, "quadrature standard error")
    for name, (read, description) in FACTS.items():
        columns[name] = variable([read(cell) for cell in cells], description)
    return columns


def is_minimum(branch: xr.Dataset) -> xr.DataArray:
    """True where the branch exists and is not known to be a saddle."""
    exists = branch["on_branch"].astype(bool)
    return exists & (branch["kind"] != "saddle") if "kind" in branch else exists
