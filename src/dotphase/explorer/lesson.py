"""Watching it learn: a descent at a point, in theory and as a run, and what is computed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dotphase.config.parameters import Choice
from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point, bounded, whole
from dotphase.explorer.shared_jobs import Growing
from dotphase.explorer.subprocesses import Children, Said
from dotphase.explorer.trainings import RUNNING
from dotphase.finite_d.initialization import PrescribedStart, start_from

#: Where a descent may begin.
STARTS = ("semantic", "positional", "random")
#: Bounds of what is watched, so that the theory takes seconds and a run fits into memory.
RATES, MOMENTA, STEPS = (0.01, 40.0), (0.0, 0.95), (5, 250)
SCALES, DIMENSIONS, RUNS = (0.01, 2.0), (50, 1500), (1, 8)
#: Runs unless told otherwise.
REPEATS = 4
#: Sizes of the ensembles: a first look, and what stays; that is computed with half as many as
#: well, so that its errors hold what the size of the ensembles shifts.
STAGES: tuple[dict[str, Any], ...] = (
    {"log2_ensemble": 11, "repetitions": 2, "rtol": None},
    {"log2_ensemble": 12, "repetitions": 8, "rtol": 1.0},
)


@dataclass(frozen=True)
class Lesson:
    """What is watched.

    Attributes
    ----------
    point : the model and alpha
    begin : "semantic", "positional" or "random"
    lr, momentum, steps : the rule, and how long
    scale : standard deviation of the entries of a random start
    d : dimension of the runs, and of the overlaps that a random start has
    """

    point: Point = field(default_factory=Point)
    begin: str = "semantic"
    lr: float = 8.0
    momentum: float = 0.0
    steps: int = 100
    scale: float = 0.5
    d: int = 500

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Lesson:
        """From what `to_dict` gave."""
        return cls(**{**told, "point": Point(**told["point"])})

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "point": self.point.to_dict()}

    def rule(self) -> dict[str, Any]:
        """The rule, by the names that `dynamics` and `train` have for it."""
        return {"lr": self.lr, "momentum": self.momentum, "steps": self.steps}

    def start(self) -> str | PrescribedStart:
        """Where theory and runs begin, the same for both."""
        return self.begin if self.begin == "semantic" else start_from(**self.overlaps())

    def overlaps(self) -> dict[str, float]:
        """theta, m and q of token 1 at a start that is not semantic.

        A positional start has ``|Q|^2 = d``. The overlaps of a random start, ``Q.Q*/d`` and
        ``Q.p/sqrt d``, would be zero in the limit and stay there for ever: it has those that are
        typical of its dimension, ``scale/sqrt d``.
        """
        if self.begin == "positional":
            return {"m": 1.0}
        rho, small = self.point["sigma"] ** 2, self.scale / self.d**0.5
        return {"theta": rho * small, "m": small, "q": rho * (self.scale**2 + 2 * small**2)}


def limits() -> dict[str, Any]:
    """What the page makes its fields from: bounds and defaults."""
    bounds = {"lr": RATES, "momentum": MOMENTA, "steps": STEPS, "scale": SCALES,
              "dimension": DIMENSIONS, "repeats": RUNS}  # fmt: skip
    return {
        "bounds": bounds,
        "starts": STARTS,
        "defaults": {**Lesson().to_dict(), "repeats": REPEATS},
    }


def can_be_watched(point: Point) -> bool:
    """Whether the page has a lesson about a model."""
    return point.family.is_paper and point["student_rank"] == 1


def read_lesson(query: Mapping[str, str], point: Point) -> Lesson:
    """What a query asks to watch at a point, checked."""
    if not can_be_watched(point):
        rule = "must be the paper's, with a student of one column, to be watched"
        raise InvalidInput("model", point.reference, rule)
    begin = Choice(STARTS).parse("begin", query.get("begin", Lesson.begin))
    numbers = {
        name: bounded(name, query.get(name, str(getattr(Lesson, name))), *bounds)
        for name, bounds in (("lr", RATES), ("momentum", MOMENTA), ("scale", SCALES))
    }
    steps = whole("steps", query.get("steps", str(Lesson.steps)), *STEPS)
    d = whole("dimension", query.get("dimension", str(Lesson.d)), *DIMENSIONS)
    return Lesson(point, begin, steps=steps, d=d, **numbers)


def in_the_limit(lesson: Lesson) -> Lesson:
    """The lesson without what its theory does not depend on, so that it is computed once.

    Scale and dimension matter in the limit only for the overlaps that a random start is given.
    """
    if lesson.begin == "random":
        return lesson
    return Lesson(lesson.point, lesson.begin, lesson.lr, lesson.momentum, lesson.steps)


def read_runs(query: Mapping[str, str]) -> int:
    """How many runs a query asks for."""
    return whole("repeats", query.get("repeats", str(REPEATS)), *RUNS)


def begin_theory(children: Children, lesson: Lesson, growing: Growing) -> None:
    """Compute the theory of a lesson in a process of its own."""
    if children.running("theory") >= RUNNING:
        growing.give_up(f"{RUNNING} others are being computed for other windows: try again")
        return

    def note(said: Said) -> None:
        with growing.lock:
            growing.value = said.get("value", growing.value)
            growing.progress = said.get("progress", growing.progress)
            growing.done = growing.done or said["state"] == "done"
            if said["state"] == "failed":
                growing.give_up(said["message"])

    def end(wrong: str) -> None:
        with growing.lock:
            if not growing.done and growing.error is None:
                growing.give_up(wrong or "its process ended early")

    process = children.start({"task": "theory", "lesson": lesson.to_dict()}, note, end)
    growing.when_dropped(lambda: children.kill(process))
