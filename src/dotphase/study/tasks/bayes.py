"""Bayes-optimal estimation, as `dotphase.bayes.optimal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the Bayes-optimal overlap and test error."""
    from dotphase.theory.bayes import bayes_optimal

    results = bayes_optimal(model, parameters["alpha"], seed=seed).to_dict()
    return results | {"test_error_stderr": results["stderr"]}


TASK = Task(
    compute,
    table(ALPHA),
    {
        "overlap": Result(float, "M = q/sigma^2 of the Bayes-optimal estimate"),
        "test_error": Result(float, "test error of the posterior mean"),
        "test_error_stderr": Result(float, "quadrature standard error"),
        "weak_recovery": Result(bool, "whether anything is known of the teacher's weights"),
        "exact_recovery": Result(bool, "whether they are known exactly"),
        "unique": Result(bool, "whether there is no other stable fixed point"),
        "converged": Result(bool, "whether the fixed-point equation was solved"),
    },
)
