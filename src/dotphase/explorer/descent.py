"""Gradient descent at a point, step by step: its settings, from a query, and its theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dotphase.config.parameters import Choice
from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point, parse_integer, parse_number
from dotphase.explorer.shared_jobs import SharedJob
from dotphase.explorer.subprocesses import JobProcesses, Message
from dotphase.explorer.trainings import MAX_RUNNING
from dotphase.finite_d.initialization import PrescribedStart, start_from

#: Names of the initializations.
INITIALIZATIONS = ("semantic", "positional", "random")
#: Bounds of the numbers of the form: the theory takes seconds, and a run fits into memory.
BOUNDS: dict[str, tuple[Any, Any]] = {
    "lr": (0.01, 40.0), "momentum": (0.0, 0.95), "steps": (5, 250), "scale": (0.01, 2.0),
    "dimension": (50, 1500), "runs": (1, 8),
}  # fmt: skip
#: Default number of runs.
DEFAULT_RUNS = 4
#: Ensembles of the first look and of the final theory. With `rtol`, `dynamics` runs ensembles of
#: half the size as well, so that the errors contain the effect of the size.
STAGES: tuple[dict[str, Any], ...] = (
    {"log2_ensemble": 11, "repetitions": 2, "rtol": None},
    {"log2_ensemble": 12, "repetitions": 8, "rtol": 1.0},
)


@dataclass(frozen=True)
class Descent:
    """Gradient descent from an initialization."""

    point: Point = field(default_factory=Point)  #: the model and alpha
    initialization: str = "semantic"  #: "semantic", "positional" or "random"
    #: the rule and the number of its steps
    lr: float = 8.0
    momentum: float = 0.0
    steps: int = 100
    scale: float = 0.5  #: standard deviation of the entries of a random initialization
    d: int = 500  #: dimension of the runs, which sets the overlaps of a random initialization

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Descent:
        """The inverse of `to_dict`."""
        return cls(**{**values, "point": Point(**values["point"])})

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return {**asdict(self), "point": self.point.to_dict()}

    def rule(self) -> dict[str, Any]:
        """The rule as arguments of `dynamics` and `train`."""
        return {"lr": self.lr, "momentum": self.momentum, "steps": self.steps}

    def start(self) -> str | PrescribedStart:
        """The initialization as an argument of `dynamics` and `train`, the same for both."""
        is_semantic = self.initialization == "semantic"
        return self.initialization if is_semantic else start_from(**self.overlaps())

    def overlaps(self) -> dict[str, float]:
        """theta, m and q of token 1 at an initialization that is not semantic.

        A positional initialization has ``|Q|^2 = d``. The overlaps of a random one, ``Q.Q*/d`` and
        ``Q.p/sqrt d``, vanish for large d and then stay zero. Instead they have the typical value
        at this dimension, ``scale/sqrt d``.
        """
        if self.initialization == "positional":
            return {"m": 1.0}
        rho, typical = self.point["sigma"] ** 2, self.scale / self.d**0.5
        return {"theta": rho * typical, "m": typical, "q": rho * (self.scale**2 + 2 * typical**2)}

    def in_the_limit(self) -> Descent:
        """Reset the fields that do not change the theory, so that it is computed once.

        Scale and dimension change it only through the overlaps of a random initialization.
        """
        if self.initialization == "random":
            return self
        return Descent(self.point, self.initialization, self.lr, self.momentum, self.steps)


def descent_form() -> dict[str, Any]:
    """Bounds, initializations and defaults of the form on the page."""
    defaults = {**Descent().to_dict(), "dimension": Descent.d, "runs": DEFAULT_RUNS}
    return {"bounds": BOUNDS, "initializations": INITIALIZATIONS, "defaults": defaults}


def has_descent(point: Point) -> bool:
    """True if the page can show gradient descent of a model step by step."""
    return point.family.is_paper and point["student_rank"] == 1


def parse_descent(query: Mapping[str, str], point: Point) -> Descent:
    """Parse and check the settings of gradient descent at a point."""
    if not has_descent(point):
        rule = "must be the paper's, with a student of one column, to show gradient descent"
        raise InvalidInput("model", point.reference, rule)
    choice = query.get("initialization", Descent.initialization)
    initialization = Choice(INITIALIZATIONS).parse("initialization", choice)
    numbers = {
        name: parse_number(name, query.get(name, str(getattr(Descent, name))), *BOUNDS[name])
        for name in ("lr", "momentum", "scale")
    }
    steps = parse_integer("steps", query.get("steps", str(Descent.steps)), *BOUNDS["steps"])
    d = parse_integer("dimension", query.get("dimension", str(Descent.d)), *BOUNDS["dimension"])
    return Descent(point, initialization, steps=steps, d=d, **numbers)


def parse_runs(query: Mapping[str, str]) -> int:
    """Parse the number of runs."""
    return parse_integer("runs", query.get("runs", str(DEFAULT_RUNS)), *BOUNDS["runs"])


def start_theory(processes: JobProcesses, descent: Descent, job: SharedJob) -> None:
    """Compute the theory of gradient descent in a process of its own."""
    if processes.count("dynamics") >= MAX_RUNNING:
        job.fail(f"at most {MAX_RUNNING} run at once, for other windows: try again")
        return

    def on_message(message: Message) -> None:
        with job.lock:
            job.value = message.get("value", job.value)
            job.progress = message.get("progress", job.progress)

    def on_exit(error: str) -> None:
        with job.lock:
            job.done = not error
            if error:
                job.fail(error)

    task = {"task": "dynamics", "descent": descent.to_dict()}
    process = processes.start(task, on_message, on_exit)
    job.on_cancel(lambda: processes.kill(process))
