"""Transition, ends of the branches and threshold against the linear layer: `dotphase critical`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import Flag, Number, Parameter, table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import LINEAR, LOG2


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the critical values of alpha."""
    from dotphase.theory.critical import critical

    result = critical(model, seed=seed, **parameters)
    values = result.to_dict()
    for name, branch in product(_BRANCH_EVENTS, _BRANCHES):
        values[f"{name}_{branch}"] = getattr(result, name).get(branch, math.nan)
    return values


#: Names of alphas of each branch, and the events at them.
_BRANCH_EVENTS = {"stability_loss": "stops being a minimum", "branch_end": "ends"}
_BRANCHES = ("semantic", "positional")

TASK = Task(
    compute,
    table(
        Parameter("alpha_min", Number(above=0), 0.05, "Smallest alpha of the search."),
        Parameter("alpha_max", Number(above=0), 8.0, "Largest alpha of the search."),
        Parameter("log2_points", LOG2, 17, "log2 of the Gaussian points."),
        Parameter("limits", Flag(), True, "Also find the end of each branch."),
    ),
    {
        "alpha_c": Result(float, "alpha where the training losses cross"),
        "alpha_c_stderr": Result(float, "quadrature standard error"),
        "alpha_c_model_error": Result(float, "how far breaking replica symmetry would move it"),
        "alpha_l": Result(float, "alpha where the test error passes that of the linear layer"),
        "alpha_l_stderr": Result(float, "quadrature standard error"),
        **LINEAR,
        **{
            f"{name}_{branch}": Result(float, f"alpha where the {branch} branch {event}")
            for name, event in _BRANCH_EVENTS.items()
            for branch in _BRANCHES
        },
        "trusted": Result(bool, "whether the theory can be trusted there"),
        "message": Result(str, "what was found, or why not"),
    },
)
