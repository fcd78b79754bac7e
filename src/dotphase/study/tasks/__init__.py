"""Tasks of studies: functions from named parameters and a seed to named results.

A task is one file of this package with a `TASK`: a function, its parameters besides those of the
model, and its results. Validation, sweeps, the journal, the dataset and the options of the command
of the same name follow from these tables. Points are independent of each other, so that a study
does not depend on the order in which they are computed. A task imports its libraries when a point
is computed, which keeps the process that only distributes points small.
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
from dotphase.errors import describe_error
from dotphase.model.load import Reference

if TYPE_CHECKING:
    from dotphase.model import Model
    from dotphase.storage.journal import PointResult

Values = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """Type (float, int, bool or str) and description of a result of a task."""

    kind: type
    description: str


@dataclass(frozen=True)
class Task:
    """Computation at the points of a study."""

    #: function of (model, parameters, seed) that returns all `results`; without the model if
    #: `takes_model` is False
    compute: Callable[..., Values]
    #: tables by name
    parameters: Mapping[str, Parameter]
    results: Mapping[str, Result]
    takes_model: bool = True  #: False if the task has its own model


#: Tasks by name.
TASKS: Registry[Task] = Registry(
    "task",
    "dotphase.study.tasks",
    "TASK",
    order=(
        "theory", "online", "train", "amp", "critical", "bayes", "bayes-layers", "regression",
        "wide",
    ),
)  # fmt: skip


def compute_point(
    task: str,
    index: int,
    parameters: Mapping[str, Any],
    seed: int,
    model: Mapping[str, Any] | None = None,
) -> PointResult:
    """Compute one point of a grid; an exception becomes the reason of its failure.

    The parameters are those of the task and of the model. `model` has the fields of a `Reference`;
    None if the task has its own model.
    """
    from dotphase.storage.journal import PointResult

    start = time.perf_counter()
    try:
        definition = TASKS[task]
        own = {name: parameters[name] for name in definition.parameters}
        arguments: list[Any] = [own, seed]
        if model is not None:
            of_model = {name: value for name, value in parameters.items() if name not in own}
            arguments.insert(0, _model(Reference(**model), json.dumps(of_model)))
        results = definition.compute(*arguments)
        values = {name: result.kind(results[name]) for name, result in definition.results.items()}
    except (Exception, SystemExit) as error:  # a user's model may call sys.exit
        return PointResult(index, None, describe_error(error), time.perf_counter() - start)
    return PointResult(index, values, None, time.perf_counter() - start)


@lru_cache(maxsize=64)
def _model(reference: Reference, parameters: str) -> Model:
    """Return a model; points with equal parameters share one object, which is compiled once."""
    return reference.find().build(**json.loads(parameters))
