"""Jobs of the page that run in processes of their own, whose low priority keeps it responsive."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from dotphase.config.serialization import to_json_types
from dotphase.errors import InvalidInput

#: Niceness of the processes.
NICENESS = 5
#: Number of sampled sentences whose attention is shown along gradient descent.
SENTENCES = 8
#: Numbers of steps after which dots show gradient descent on the landscape.
DOT_STEPS = (1, 4, 16, 64)
#: Size of these steps.
DOT_LEARNING_RATE = 8.0
#: Decimals of an attention weight.
DECIMALS = 4


#: Sends a report, with its fields as keywords.
Send = Callable[..., None]


def run(job: dict[str, Any], report: Callable[[dict[str, Any]], None]) -> None:
    """Run a job: the name of its task, and its arguments."""
    from dotphase.runtime.compilation_cache import enable_for_process

    def send(**fields: Any) -> None:
        report(to_json_types(fields))

    with suppress(OSError):
        os.nice(NICENESS)
    enable_for_process()
    send(steps=0)
    tasks: dict[str, Callable[..., None]] = {
        "train": train, "dynamics": dynamics, "descend": descend
    }  # fmt: skip
    arguments = dict(job)
    tasks[arguments.pop("task")](send, **arguments)


def train(send: Send, point: dict[str, Any], **options: Any) -> None:
    """Train students, send every finished run, and before that dots on the landscape.

    The optimizer that finds the minima takes few long steps. The dots show gradient descent from
    the same initializations on the same data instead, after more and more steps.
    """
    from dotphase.explorer.point import Point
    from dotphase.runtime.progress import ProgressEvent
    from dotphase.training.run import train as train_students

    def report(event: ProgressEvent) -> None:
        if event.result is None:
            send(steps=event.done)
        else:
            send(run=event.result.to_dict())

    at = Point(**point)
    model = at.model()
    dots = {**options, "optimizer": "gd", "lr": DOT_LEARNING_RATE}
    for steps in DOT_STEPS if has_landscape(model) else ():
        training = train_students(model, at.alpha, **dots, steps=steps)
        send(steps=steps, dots=[(run.m, run.theta) for run in training.runs])
    train_students(model, at.alpha, **options, progress=report)


def has_landscape(model: Any) -> bool:
    """True if the page has a landscape on which dots can move."""
    from dotphase.theory.plane import Plane

    try:
        Plane.of(model)
    except InvalidInput:
        return False
    return model.spectrum is None


def dynamics(send: Send, descent: dict[str, Any]) -> None:
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
        send(progress=next(done, total) / total)

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
        send(value=value)


def descend(send: Send, descent: dict[str, Any], seeds: int) -> None:
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
    send(path=path)


def attention(model: Any, theta: np.ndarray, m: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    """Attention matrices along a path, rounded."""
    from dotphase.experiments.theory.attention import attention_along

    matrices = attention_along(model, theta, m, q, SENTENCES)
    return {
        learner: {kind: np.round(values, DECIMALS) for kind, values in parts.items()}
        for learner, parts in matrices.items()
    }
