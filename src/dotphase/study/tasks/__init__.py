"""What a point of a study computes: named parameters and a seed in, named results out.

A task is one file of this package with a `TASK`: a function, the parameters it takes besides the
model's, and the results it gives. Validation, sweeps, the journal, the dataset and the options of
the command of the same name follow from the tables. Points know nothing of each other, so that a
study does not depend on the order in which they are computed. What a task needs is imported when a
point is computed: the process that only hands out the points stays small.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dotphase.config.parameters import Parameter
from dotphase.config.registry import Registry
from dotphase.errors import InvalidInput
from dotphase.model.load import Reference

if TYPE_CHECKING:
    from dotphase.model import Model
    from dotphase.storage.journal import PointResult

Values = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """A result of a task: float, int, bool or str, and what it means."""

    kind: type
    description: str


@dataclass(frozen=True)
class Task:
    """What can be computed at a point.

    Attributes
    ----------
    compute : function of (model, parameters, seed) that returns every one of `results`; without
        the model if the task has its own
    parameters, results : by name
    takes_model : whether it is for any model
    """

    compute: Callable[..., Values]
    parameters: Mapping[str, Parameter]
    results: Mapping[str, Result]
    takes_model: bool = True


#: Tasks by name.
TASKS: Registry[Task] = Registry(
    "task",
    "dotphase.study.tasks",
    "TASK",
    order=("theory", "train", "amp", "critical", "bayes", "regression"),
)


def compute_point(
    task: str,
    index: int,
    parameters: Mapping[str, Any],
    seed: int,
    model: Mapping[str, Any] | None = None,
) -> PointResult:
    """Compute one point; whatever it raises becomes the reason of its failure.

    Parameters
    ----------
    task : name of a task
    index : place of the point in the grid
    parameters : of the task and of the model, by name
    seed : of everything random
    model : fields of a `Reference`; None if the task has a model of its own
    """
    from dotphase.storage.journal import PointResult

    began = time.perf_counter()
    try:
        chosen = TASKS[task]
        own = {name: parameters[name] for name in chosen.parameters}
        if model is None:
            found = chosen.compute(own, seed)
        else:
            rest = {name: value for name, value in parameters.items() if name not in own}
            made = _model(Reference(**model), json.dumps(rest))
            found = chosen.compute(made, own, seed)
        values = {name: result.kind(found[name]) for name, result in chosen.results.items()}
    except Exception as error:
        return PointResult(index, None, reason_of(error), time.perf_counter() - began)
    return PointResult(index, values, None, time.perf_counter() - began)


@lru_cache(maxsize=64)
def _model(reference: Reference, parameters: str) -> Model:
    """The model of some points; one object for all of them, so that it is compiled once."""
    return reference.find().build(**json.loads(parameters))


def reason_of(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, InvalidInput):
        return text
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__
