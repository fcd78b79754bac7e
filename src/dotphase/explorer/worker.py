"""The process that computes: a job as JSON on stdin, one JSON object per line on stdout.

A process of its own, with low priority, so that the page stays quick while it works, a
cancelled job is gone at once, and its memory goes with it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from dotphase.config.serialization import to_json_types
from dotphase.errors import InvalidInput

#: How much this process gives way to others.
NICENESS = 5
#: Sentences on which attention is shown along a descent.
SENTENCES = 8
#: After how many steps of gradient descent the page shows where it is, and how large they are.
WALK, RATE = (1, 2, 4, 8, 16, 32, 64), 8.0
#: Decimals of an attention weight.
DECIMALS = 4


def main() -> int:
    """Do what stdin says."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    with suppress(OSError):
        os.nice(NICENESS)
    tasks: dict[str, Callable[..., None]] = {"train": train, "theory": theory, "descend": descend}
    task = tasks[job.pop("task")]
    from dotphase.runtime.compilation_cache import enable_for_process

    enable_for_process()
    tell(state="running", steps=0)
    try:
        task(**job)
    except InvalidInput as error:
        tell(state="failed", message=str(error))
        return 2
    tell(state="done")
    return 0


def _end_with_the_server() -> None:
    """The server keeps its end of stdin open as long as it lives, also if it is killed."""
    sys.stdin.read()
    os._exit(1)


def train(point: dict[str, Any], **options: Any) -> None:
    """Train students; every finished run is told, and before that where gradient descent goes.

    The optimizer that finds the minima takes few long steps: what moves on the page is gradient
    descent from the same starts on the same data, after more and more steps.
    """
    from dotphase.explorer.point import Point
    from dotphase.runtime.progress import ProgressEvent
    from dotphase.training.run import train as train_students

    def report(event: ProgressEvent) -> None:
        if event.result is None:
            tell(state="running", steps=event.done)
        else:
            tell(state="running", run=event.result.to_dict())

    here = Point(**point)
    model = here.model()
    for steps in WALK if has_landscape(model) else ():
        walk = train_students(model, here.alpha, **options, optimizer="gd", lr=RATE, steps=steps)
        tell(state="running", steps=steps, dots=[(run.m, run.theta) for run in walk.runs])
    train_students(model, here.alpha, **options, progress=report)


def has_landscape(model: Any) -> bool:
    """Whether the page has a landscape for dots to move on."""
    from dotphase.theory.plane import Plane

    try:
        Plane.of(model)
    except InvalidInput:
        return False
    return model.spectrum is None


def theory(lesson: dict[str, Any]) -> None:
    """Gradient descent in the limit of large d: small ensembles, then larger ones."""
    from dotphase.dmft.result import QUANTITIES
    from dotphase.dmft.run import dynamics
    from dotphase.explorer.lesson import STAGES, Lesson
    from dotphase.runtime.progress import ProgressEvent

    asked = Lesson.of(lesson)
    model = asked.point.model()
    total = sum(stage["repetitions"] * (2 if stage["rtol"] else 1) for stage in STAGES)
    done = iter(range(1, total + 1))

    def progress(event: ProgressEvent) -> None:
        tell(state="running", progress=next(done, total) / total)

    for number, stage in enumerate(STAGES):
        path = dynamics(
            model, asked.point.alpha, asked.start(), **asked.rule(),
            **stage, progress=progress,
        )  # fmt: skip
        theta, m, q = path.overlaps
        told = ("steps", *QUANTITIES, "stderr", "trusted_until", "diverged_at", "message",
                "sentences", "repetitions", "seconds")  # fmt: skip
        value = {
            **{name: getattr(path, name) for name in told},
            "stage": number,
            "attention": attention(model, theta[..., 0, 0], m[..., 0], q[..., 0, 0]),
        }
        tell(state="running", value=value)


def descend(lesson: dict[str, Any], seeds: int) -> None:
    """Gradient descent at finite d, from the same start by the same rule."""
    from dotphase.dmft.result import QUANTITIES
    from dotphase.explorer.lesson import Lesson
    from dotphase.training.run import train as train_students

    asked = Lesson.of(lesson)
    model = asked.point.model()
    rule = asked.rule()
    momentum = rule.pop("momentum")
    kind = {"optimizer": "momentum", "momentum": momentum} if momentum else {"optimizer": "gd"}
    found = train_students(
        model, asked.point.alpha, asked.d, seeds=seeds, start=asked.start(), record=True,
        **rule, **kind,
    )  # fmt: skip
    assert found.path is not None
    rows = {name: found.path[name].values for name in QUANTITIES}
    # Attention that the first run pays, from its overlaps: which signs they have does not matter.
    along = np.asarray(model.positions)[0] / np.asarray(model.positions)[0, 0]
    scale = np.asarray(model.rho) / float(model.rho[0])
    theta, m, q = (rows[name][0][:, None] for name in ("theta", "m", "q"))
    ended = [run.iterations if run.diverged else None for run in found.runs]
    tell(
        state="running",
        path={
            "steps": found.path["step"].values,
            **rows,
            "diverged_at": ended,
            "attention": attention(model, theta * scale, m * along, q * scale),
        },
    )


def attention(model: Any, theta: np.ndarray, m: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    """Attention along a path, with as many digits as can be seen."""
    from dotphase.experiments.theory.attention import attention_along

    found = attention_along(model, theta, m, q, SENTENCES)
    return {
        who: {kind: np.round(values, DECIMALS) for kind, values in parts.items()}
        for who, parts in found.items()
    }


def tell(**what: Any) -> None:
    """One line for the page."""
    print(json.dumps(to_json_types(what), allow_nan=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
