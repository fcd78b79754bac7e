"""One branch of state evolution at one alpha, as `dotphase solve`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import Choice, Number, Parameter, table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA, LINEAR, LOG2, LOSSES


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the solution, its standard errors and its stability."""
    from dotphase.theory.solve import solve

    settings = dict(parameters)
    solution = solve(model, settings.pop("alpha"), settings.pop("branch"), seed=seed, **settings)
    results = solution.to_dict()
    return {
        **results,
        **results["norms"],
        **results["stability"],
        **{f"{name}_stderr": error for name, error in results["stderr"].items()},
        "on_branch": solution.on_branch,
    }


_NUMBERS = {
    "q": Result(float, "norm of q of token 1"),
    "m": Result(float, "norm of m of token 1"),
    "V": Result(float, "norm of V of token 1"),
    "theta": Result(float, "norm of theta of token 1"),
    **LOSSES,
}

TASK = Task(
    compute,
    table(
        ALPHA,
        Parameter("branch", Choice("dotphase.theory.branches:BRANCHES"), "semantic",
                  "Branch of fixed points."),
        Parameter("rtol", Number(above=0), 2e-3,
                  "Relative standard error to reach."),
        Parameter("log2_points", LOG2, None, "log2 of the number of points [default: by rtol]."),
        Parameter("max_log2_points", LOG2, 20, "log2 of the largest number of points."),
    ),
    {
        **_NUMBERS,
        **{f"{name}_stderr": Result(float, "quadrature standard error") for name in _NUMBERS},
        **LINEAR,
        "found": Result(str, "branch that the fixed point belongs to"),
        "on_branch": Result(bool, "whether it is the requested branch"),
        "converged": Result(bool, "whether the solver converged"),
        "trusted": Result(bool, "whether the theory can be trusted here"),
        "replicon": Result(float, "stable below 1"),
        "jump_weight": Result(float, "weight of the jumps"),
        "residual": Result(float, "undamped relative residual"),
        "iterations": Result(int, "evaluations of the map"),
        "log2_points": Result(int, "log2 of the Gaussian points"),
    },
)  # fmt: skip
