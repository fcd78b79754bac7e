"""The process that computes for the page: one job from stdin, reports as lines of JSON on stdout.

A process of its own, with low priority, keeps the page responsive. A canceled job ends at once, and
its memory is free.
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

#: Niceness of this process.
NICENESS = 5
#: Number of sampled sentences whose attention is shown along gradient descent.
SENTENCES = 8
#: Numbers of steps after which dots show gradient descent on the landscape.
DOT_STEPS = (1, 2, 4, 8, 16, 32, 64)
#: Size of these steps.
DOT_LEARNING_RATE = 8.0
#: Decimals of an attention weight.
DECIMALS = 4


def main() -> int:
    """Run the job that stdin describes."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_server, daemon=True).start()
    with suppress(OSError):
        os.nice(NICENESS)
    tasks: dict[str, Callable[..., None]] = {
        "train": train, "dynamics": dynamics, "descend": descend
    }  # fmt: skip
    task = tasks[job.pop("task")]
    from dotphase.runtime.compilation_cache import enable_for_process

    enable_for_process()
    send(state="running", steps=0)
    try:
        task(**job)
    except InvalidInput as error:
        send(state="failed", message=str(error))
        return 2
    send(state="done")
    return 0


def _end_with_server() -> None:
    """End when stdin closes: the server keeps it open, and also a killed server closes it."""
    sys.stdin.read()
    os._exit(1)


def train(point: dict[str, Any], **options: Any) -> None:
    """Train students, send every finished run, and before that dots on the landscape.

    The optimizer that finds the minima takes few long steps. The dots show gradient descent from
    the same initializations on the same data instead, after more and more steps.
    """
    from dotphase.explorer.point import Point
    from dotphase.runtime.progress import ProgressEvent
    from dotphase.training.run import train as train_students

    def report(event: ProgressEvent) -> None:
        if event.result is None:
            send(state="running", steps=event.done)
        else:
            send(state="running", run=event.result.to_dict())

    at = Point(**point)
    model = at.model()
    dots = {**options, "optimizer": "gd", "lr": DOT_LEARNING_RATE}
    for steps in DOT_STEPS if has_landscape(model) else ():
        training = train_students(model, at.alpha, **dots, steps=steps)
        send(state="running", steps=steps, dots=[(run.m, run.theta) for run in training.runs])
    train_students(model, at.alpha, **options, progress=report)


def has_landscape(model: Any) -> bool:
    """True if the page has a landscape on which dots can move."""
    from dotphase.theory.plane import Plane

    try:
        Plane.of(model)
    except InvalidInput:
        return False
    return model.spectrum is None


def dynamics(descent: dict[str, Any]) -> None:
    """Compute gradient descent in the limit of large d: small ensembles, then larger ones."""
    from dotphase.dmft.result import QUANTITIES
    from dotphase.dmft.run import dynamics as compute_dynamics
    from dotphase.explorer.descent import STAGES, Descent
    from dotphase.runtime.progress import ProgressEvent

    settings = Descent.from_dict(descent)
    model = settings.point.model()
    total = sum(stage["repetitions"] * (2 if stage["rtol"] else 1) for stage in STAGES)
    done = iter(range(1, total + 1))

    def report(event: ProgressEvent) -> None:
        send(state="running", progress=next(done, total) / total)

    for number, stage in enumerate(STAGES):
        path = compute_dynamics(
            model, settings.point.alpha, settings.start(), **settings.rule(),
            **stage, progress=report,
        )  # fmt: skip
        theta, m, q = path.overlaps
        names = ("steps", *QUANTITIES, "stderr", "trusted_until", "diverged_at", "message",
                 "sentences", "repetitions", "seconds")  # fmt: skip
        value = {
            **{name: getattr(path, name) for name in names},
            "stage": number,
            "attention": attention(model, theta[..., 0, 0], m[..., 0], q[..., 0, 0]),
        }
        send(state="running", value=value)


def descend(descent: dict[str, Any], seeds: int) -> None:
    """Run gradient descent at finite d, from the same initialization by the same rule."""
    from dotphase.dmft.result import QUANTITIES
    from dotphase.explorer.descent import Descent
    from dotphase.training.run import train as train_students

    settings = Descent.from_dict(descent)
    model = settings.point.model()
    rule = settings.rule()
    momentum = rule.pop("momentum")
    optimizer = {"optimizer": "momentum", "momentum": momentum} if momentum else {"optimizer": "gd"}
    training = train_students(
        model, settings.point.alpha, settings.d, seeds=seeds, start=settings.start(), record=True,
        **rule, **optimizer,
    )  # fmt: skip
    assert training.path is not None
    rows = {name: training.path[name].values for name in QUANTITIES}
    # The overlaps of the first run give its attention; their signs do not matter.
    along = np.asarray(model.positions)[0] / np.asarray(model.positions)[0, 0]
    scale = np.asarray(model.rho) / float(model.rho[0])
    theta, m, q = (rows[name][0][:, None] for name in ("theta", "m", "q"))
    path = {
        "steps": training.path["step"].values,
        **rows,
        "diverged_at": [run.iterations if run.diverged else None for run in training.runs],
        "attention": attention(model, theta * scale, m * along, q * scale),
    }
    send(state="running", path=path)


def attention(model: Any, theta: np.ndarray, m: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    """Attention matrices along a path, rounded."""
    from dotphase.experiments.theory.attention import attention_along

    matrices = attention_along(model, theta, m, q, SENTENCES)
    return {
        learner: {kind: np.round(values, DECIMALS) for kind, values in parts.items()}
        for learner, parts in matrices.items()
    }


def send(**message: Any) -> None:
    """Send one report to the server."""
    print(json.dumps(to_json_types(message), allow_nan=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
