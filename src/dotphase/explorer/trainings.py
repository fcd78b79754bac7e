"""Trainings that the page starts, follows and cancels; each has a process of its own."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dotphase.config.parameters import Choice
from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point, parse_integer
from dotphase.explorer.subprocesses import JobProcesses, Message
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.model import Model
from dotphase.runtime.processes import Worker

#: Bounds of the dimension: a run takes seconds and fits into memory.
DIMENSIONS = (10, 2000)
#: Bounds of the number of runs.
SEEDS = (1, 16)
#: Largest root seed.
MAX_SEED = 999_999
#: Largest number of trainings at once.
MAX_RUNNING = 2
#: Number of ended trainings that are remembered.
MAX_ENDED = 32


@dataclass
class TrainingJob:
    """A training and its state."""

    request: dict[str, Any]  #: task of the process and its arguments
    state: str = "starting"  #: "starting", "running", "done", "failed" or "canceled"
    message: str = ""  #: reason of a failure
    steps: int = 0  #: number of steps of the present run
    runs: list[dict[str, Any]] = field(default_factory=list)  #: finished runs
    #: m and theta of every run after more and more steps of gradient descent
    dots: list[list[Any]] = field(default_factory=list)
    path: dict[str, Any] | None = None  #: quantities at every step, if the task records them
    process: Worker | None = None

    @property
    def ended(self) -> bool:
        """True if no more results will follow."""
        return self.state in ("done", "failed", "canceled")

    def to_dict(self) -> dict[str, Any]:
        """Request, state and results, for the page."""
        progress = 1.0 if self.state == "done" else len(self.runs) / self.request["seeds"]
        names = ("state", "message", "steps", "ended", "runs", "dots", "path")
        values = {name: getattr(self, name) for name in names}
        return {**self.request, **values, "progress": progress}


def starts(model: Model) -> tuple[str, ...]:
    """Names of the initializations that fit a student."""
    columns = model.student_rank
    return tuple(
        name for name, start in INITIALIZERS.items() if start.objection(model, columns) is None
    )


def parse_training(query: Mapping[str, str], point: Point) -> dict[str, Any]:
    """Parse and check the options of a training at a point."""
    allowed = starts(point.model())
    return {
        "d": parse_integer("d", query.get("d", "200"), *DIMENSIONS),
        "seeds": parse_integer("seeds", query.get("seeds", "4"), *SEEDS),
        "seed": parse_integer("seed", query.get("seed", "0"), 0, MAX_SEED),
        "start": Choice(allowed).parse("start", query.get("start", allowed[0])),
    }


class Trainings:
    """All trainings of one server."""

    def __init__(self, processes: JobProcesses) -> None:
        self.processes = processes
        self._jobs: OrderedDict[str, TrainingJob] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, task: str, **arguments: Any) -> str:
        """Start a training and return its name, which nobody can guess."""
        with self._lock:
            running = sum(not job.ended for job in self._jobs.values())
            if running >= MAX_RUNNING:
                rule = f"at most {MAX_RUNNING} run at once: wait or cancel one"
                raise InvalidInput("trainings", running, rule)
            name = secrets.token_hex(8)
            job = TrainingJob({"task": task, **arguments})
            self._jobs[name] = job
            for old in [key for key, other in self._jobs.items() if other.ended][:-MAX_ENDED]:
                del self._jobs[old]
            job.process = self.processes.start(
                job.request, partial(self._on_message, job), partial(self._on_exit, job)
            )
        return name

    def get(self, name: str) -> TrainingJob:
        """A training by its name."""
        with self._lock:
            job = self._jobs.get(name)
        if job is None:
            raise InvalidInput("job", name[:40], "must be a training of this server")
        return job

    def cancel(self, name: str) -> TrainingJob:
        """End a training; its finished runs stay."""
        job = self.get(name)
        with self._lock:
            if not job.ended:
                job.state = "canceled"
        if job.process is not None:
            self.processes.kill(job.process)
        return job

    def _on_message(self, job: TrainingJob, message: Message) -> None:
        with self._lock:
            if job.ended:
                return
            job.state = "running"
            job.steps = message.get("steps", job.steps)
            job.path = message.get("path", job.path)
            if "dots" in message:
                job.dots = [*job.dots, message["dots"]]
            if "run" in message:
                job.runs = [*job.runs, message["run"]]

    def _on_exit(self, job: TrainingJob, error: str) -> None:
        with self._lock:
            if not job.ended:
                job.state, job.message = "failed" if error else "done", error
            job.process = None
