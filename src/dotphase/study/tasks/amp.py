"""One run of message passing, as `dotphase amp --seeds 1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import Integer, Number, Parameter, table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA, DIMENSION, HELD_OUT, RUN, START, TEACHER_NORM


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the results of one run."""
    from dotphase.experiments.comparison.amp import amp

    return amp(model, seeds=1, seed=seed, **parameters).runs[0].to_dict()


TASK = Task(
    compute,
    table(
        ALPHA,
        DIMENSION,
        START,
        Parameter("damping", Number(at_least=0, at_most=0.99), None,
                  "Weight of the old values in a step [default: 0.5; positional 0.8]."),
        Parameter("iterations", Integer(1), 400, "Largest number of iterations."),
        Parameter("tolerance", Number(above=0), 1e-8, "Relative change at which a run stops."),
        HELD_OUT,
        TEACHER_NORM,
    ),
    RUN
    | {
        "overlap_with_trained": Result(float, "cosine with the weights that L-BFGS finds"),
        "trained_loss": Result(float, "training loss of those weights, per dimension"),
        "two_minima": Result(float, "share of sentences whose proximal problem has two minima"),
    },
)  # fmt: skip
