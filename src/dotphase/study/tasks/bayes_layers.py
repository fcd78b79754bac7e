"""Bayes-optimal estimation of deep attention, as `dotphase.bayes.optimal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dotphase.config.parameters import table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA

if TYPE_CHECKING:
    from dotphase.model import Model


def compute(model: Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the Bayes-optimal overlaps of the first and the last layer."""
    from dotphase.theory.layered_posterior import layered_bayes

    best = layered_bayes(model, parameters["alpha"], seed)
    ends = {
        f"{name}_{suffix}": values[index]
        for suffix, values in (("overlap", best.overlaps), ("stderr", best.overlaps_stderr))
        for name, index in (("first", 0), ("last", -1))
    }
    return ends | {"test_error": best.test_error, "converged": best.converged}


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
