"""Bayes-optimal estimation of deep attention, as `dotphase.bayes.optimal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the Bayes-optimal overlaps of the first and the last layer."""
    from dotphase.theory.layered_posterior import layered_bayes

    best = layered_bayes(model, parameters["alpha"], seed)
    first, *_, last = zip(best.overlaps, best.overlaps_stderr, strict=True)
    names = ("first_overlap", "first_stderr", "last_overlap", "last_stderr")
    values = dict(zip(names, (*first, *last), strict=True))
    return values | {"test_error": best.test_error, "converged": best.converged}


TASK = Task(
    compute,
    table(ALPHA),
    {
        "first_overlap": Result(float, "M of the first layer"),
        "last_overlap": Result(float, "M of the last layer"),
        "first_stderr": Result(float, "standard error of the first overlap"),
        "last_stderr": Result(float, "standard error of the last overlap"),
        "test_error": Result(float, "test error of the posterior mean"),
        "converged": Result(bool, "whether the equations were solved"),
    },
)
