"""One student trained at finite dimension, as `dotphase train --seeds 1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import Choice, Flag, Integer, Number, Parameter, table
from dotphase.study.tasks import Task, Values
from dotphase.study.tasks._shared import ALPHA, DIMENSION, HELD_OUT, RUN, SCALE, START, TEACHER_NORM


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the results of one run."""
    from dotphase.training.run import train

    return train(model, seeds=1, runs_per_batch=1, seed=seed, **parameters).runs[0].to_dict()


TASK = Task(
    compute,
    table(
        ALPHA,
        DIMENSION,
        START,
        SCALE,
        Parameter("optimizer", Choice("dotphase.training.optimizers:OPTIMIZERS"), "lbfgs",
                  "Optimizer of the training loss."),
        Parameter("steps", Integer(1), None, "Largest number of steps [default: by optimizer]."),
        Parameter("lr", Number(above=0), None, "Step size [default: by optimizer]."),
        Parameter("tolerance", Number(above=0), None,
                  "Gradient norm/sqrt(d) at which a run stops [default: by precision]."),
        Parameter("minibatch", Integer(1), 128, "Sentences in each step of sgd."),
        Parameter("fresh", Flag(), False, "One pass with sgd: use every sentence once."),
        Parameter("momentum", Number(at_least=0), 0.9,
                  "Momentum coefficient of the optimizer momentum."),
        HELD_OUT,
        TEACHER_NORM,
        Parameter("first_index", Integer(0), 0, "Index of the first run of a seed."),
        Parameter("dtype", Choice(("float64", "float32")), "float64", "Floating-point precision."),
    ),
    RUN,
)  # fmt: skip
