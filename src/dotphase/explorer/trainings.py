"""Trainings under way: begun, followed and cancelled from the page."""

from __future__ import annotations

import secrets
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dotphase.config.parameters import Choice
from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point, whole
from dotphase.explorer.subprocesses import Children
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.model import Model

#: Bounds of what the page trains, so that a run takes seconds and fits into memory.
DIMENSIONS, SEEDS, LAST_SEED = (10, 2000), (1, 16), 999_999
#: Trainings at once, and trainings remembered.
RUNNING, REMEMBERED = 2, 32


@dataclass
class LiveTraining:
    """One training: what was asked, and how far it is.

    Attributes
    ----------
    asked : its task, where it is, and its options
    state, message, steps : in a word, in words, and in steps
    runs : that have ended
    dots : m and theta of every run along gradient descent, as far as it is
    path : what was recorded along them, if that was the task
    """

    asked: dict[str, Any]
    state: str = "starting"
    message: str = ""
    steps: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list)
    dots: list[list[Any]] = field(default_factory=list)
    path: dict[str, Any] | None = None
    process: subprocess.Popen | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("done", "failed", "cancelled")

    def to_dict(self) -> dict[str, Any]:
        """What the page is told."""
        progress = 1.0 if self.state == "done" else len(self.runs) / self.asked["seeds"]
        names = ("state", "message", "steps", "over", "runs", "dots", "path")
        return {**self.asked, **{name: getattr(self, name) for name in names}, "progress": progress}


def starts(model: Model) -> tuple[str, ...]:
    """Starts that serve a student."""
    columns = model.student_rank
    return tuple(
        name for name, start in INITIALIZERS.items() if start.refused(model, columns) is None
    )


def read_training(query: Mapping[str, str], point: Point) -> dict[str, Any]:
    """The options of a training at a point from a query, checked."""
    allowed = starts(point.model())
    return {
        "d": whole("d", query.get("d", "500"), *DIMENSIONS),
        "seeds": whole("seeds", query.get("seeds", "4"), *SEEDS),
        "seed": whole("seed", query.get("seed", "0"), 0, LAST_SEED),
        "start": Choice(allowed).parse("start", query.get("start", allowed[0])),
    }


class Trainings:
    """All trainings of one server, each one of its processes."""

    def __init__(self, children: Children) -> None:
        self.children = children
        self._live: OrderedDict[str, LiveTraining] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, task: str, **asked: Any) -> str:
        """Start a training; its name, which nobody can guess."""
        with self._lock:
            running = sum(not training.over for training in self._live.values())
            if running >= RUNNING:
                raise InvalidInput(
                    "trainings", running, f"at most {RUNNING} run at once: wait or cancel one"
                )
            name = secrets.token_hex(8)
            training = self._live[name] = LiveTraining({"task": task, **asked})
            for old in [key for key, one in self._live.items() if one.over][:-REMEMBERED]:
                del self._live[old]
            training.process = self.children.start(
                training.asked, partial(self._note, training), partial(self._end, training)
            )
        return name

    def get(self, name: str) -> LiveTraining:
        """A training by its name."""
        with self._lock:
            training = self._live.get(name)
        if training is None:
            raise InvalidInput("job", name[:40], "must be a training of this server")
        return training

    def cancel(self, name: str) -> LiveTraining:
        """End a training; its finished runs stay."""
        training = self.get(name)
        with self._lock:
            if not training.over:
                training.state = "cancelled"
        if training.process is not None:
            self.children.kill(training.process)
        return training

    def _note(self, training: LiveTraining, said: dict[str, Any]) -> None:
        with self._lock:
            if training.over:
                return
            training.state = said["state"]
            training.steps = said.get("steps", training.steps)
            training.message = said.get("message", training.message)
            training.path = said.get("path", training.path)
            if "dots" in said:
                training.dots = [*training.dots, said["dots"]]
            if "run" in said:
                training.runs = [*training.runs, said["run"]]

    def _end(self, training: LiveTraining, wrong: str) -> None:
        with self._lock:
            if not training.over:
                training.state = "failed"
                training.message = wrong or training.message or "the training process ended early"
            training.process = None
