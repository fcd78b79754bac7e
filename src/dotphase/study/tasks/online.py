"""The end of one pass over fresh sentences: last point of `dotphase online`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import Choice, Flag, Integer, Number, Parameter, table
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA, DIMENSION_OR_LIMIT, LOSSES, RUN, SCALE, START


def compute(model: models.Model, parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the results at the last alpha, and the mean alpha at which a run leaves its start."""
    from dotphase.dmft.online import QUANTITIES, online

    path = online(model, seed=seed, **parameters)
    shares = path.mechanism_shares()
    return {
        **{name: getattr(path, name)[-1] for name in QUANTITIES},
        **{f"{name}_stderr": path.stderr[name][-1] for name in QUANTITIES},
        "exit_alpha": path.exit_alpha().mean(),
        **{name: shares[name] for name in ("semantic", "positional")},
    }


_OVERLAPS = {
    "test_error": LOSSES["test_error"],
    **{name: RUN[name] for name in ("theta", "m", "q")},
}

TASK = Task(
    compute,
    table(
        ALPHA,
        Parameter("lr", Number(above=0), help="Learning rate."),
        replace(START, help="Initial weights; random ones stay at zero overlaps without d."),
        DIMENSION_OR_LIMIT,
        SCALE,
        Parameter("schedule", Choice(("constant", "linear", "cosine", "inverse")), "constant",
                  "Factor of the learning rate."),
        Parameter("batch_fraction", Number(at_least=0, at_most=1), 0.0,
                  "Sentences per step over d; 0 for one sentence."),
        Parameter("spherical", Flag(), False, "Keep the length of the weights."),
        Parameter("repetitions", Integer(1), 8, "Runs at finite d."),
    ),
    {
        **_OVERLAPS,
        **{f"{name}_stderr": Result(float, "error of it") for name in _OVERLAPS},
        "exit_alpha": Result(float, "mean alpha at which an alignment exceeds one half"),
        "semantic": Result(float, "share of runs that end semantic"),
        "positional": Result(float, "share of runs that end positional"),
    },
)  # fmt: skip
