"""Answers to requests of the page: one function per path, from a query to plain values."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from dotphase.config.serialization import to_json_types
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.attention import LAST_SENTENCE, attention_matrices
from dotphase.explorer.branch_curves import start_curve
from dotphase.explorer.descent import (
    descent_form,
    has_descent,
    parse_descent,
    parse_runs,
    start_theory,
)
from dotphase.explorer.diagram import start_diagram
from dotphase.explorer.histogram_tab import EXAMPLE, inspect_sequence
from dotphase.explorer.landscape import start_landscape
from dotphase.explorer.point import Point, branches_of, parse_integer
from dotphase.explorer.presets import presets
from dotphase.explorer.scheduler import MAX_EVALUATION, Scheduler
from dotphase.explorer.shared_jobs import SharedJob, SharedJobs
from dotphase.explorer.snippets import snippets
from dotphase.explorer.solver import Solver
from dotphase.explorer.subprocesses import JobProcesses
from dotphase.explorer.trainings import Trainings, parse_training, starts
from dotphase.figures.parts.style import COLORS, DARK_THEME_COLORS
from dotphase.theory.overlaps import Overlaps

Query = Mapping[str, str]
Route = Callable[[Query], Any]

#: Longest name of a window.
MAX_WINDOW_NAME = 32


class Explorer:
    """The state of the server; its methods are safe to call from many threads."""

    def __init__(self, default: Point | None = None) -> None:
        self.default = default or Point()
        vertical = self.default.family.vertical
        # A diagram is the same for all points that differ in its two axes.
        axes = {"alpha": 1.0, **({vertical: self.default[vertical]} if vertical else {})}
        self.scheduler = Scheduler()
        self.solver = Solver(self.scheduler)
        self.processes = JobProcesses()
        self.trainings = Trainings(self.processes)
        self.theories = SharedJobs(16, partial(start_theory, self.processes))
        self.ready = threading.Event()
        self._warm_up_thread: threading.Thread | None = None
        self.get_routes: dict[str, Route] = {
            "about": self.about,
            "point": self.point,
            "curve": self._shared_job_route(16, start_curve, alpha=1.0),
            "landscape": self._shared_job_route(16, start_landscape),
            "diagram": self._shared_job_route(8, start_diagram, **axes),
            "attention": self.attention,
            "dynamics": self.dynamics,
            "snippets": self.snippets,
            "job": self.job,
            "histogram": self.histogram,
        }
        self.post_routes: dict[str, Route] = {
            "train": self.train, "descend": self.descend, "cancel": self.cancel,
            "leave": self.leave,
        }  # fmt: skip

    def warm_up(self) -> None:
        """Compile in the background the functions that the first answers need."""

        def compile_first() -> None:
            with suppress(KeyboardInterrupt):
                try:
                    self.solver.warm_up(self.default)
                    model = self.default.model()
                    if model.loss is None:
                        attention_matrices(model, dict.fromkeys(branches_of(model)), 0)
                finally:
                    self.ready.set()

        thread = threading.Thread(target=compile_first, name="dotphase-warm-up", daemon=True)
        self._warm_up_thread = thread
        thread.start()

    def close(self) -> None:
        """End all computations and wait for those under way."""
        self.processes.close()
        self.scheduler.close()
        self.solver.close()
        if self._warm_up_thread is not None:
            self._warm_up_thread.join(MAX_EVALUATION)

    def about(self, query: Query) -> dict[str, Any]:
        """Controls and colors of the page; `ready` is true after the warm-up."""
        family = self.default.family
        return {
            "ready": self.ready.is_set(),
            "model": None if family.is_paper else family.reference,
            "defaults": self.default.to_dict(),
            "controls": family.controls(self.default),
            "vertical": family.vertical,
            "presets": presets(self.default),
            "starts": starts(self.default.model()),
            "attention": self.default.model().loss is None,
            "descent": descent_form() if family.is_paper else None,
            "colors": {"light": COLORS, "dark": DARK_THEME_COLORS},
        }

    def point(self, query: Query) -> dict[str, Any]:
        """The most precise numbers of a point so far; the page draws theta in units of `scale`."""
        point = self._parse_point(query)
        best = self.solver.best(point, _window(query))
        scale, winner = float(point.model().rho[0]), _lowest_minimum(best["value"])
        return to_json_types({**best, "point": point.to_dict(), "scale": scale, "winner": winner})

    def attention(self, query: Query) -> dict[str, Any]:
        """Attention matrices at a point, and the stages of the numbers behind them."""
        point, sentence = self._parse_point(query), _sentence(query)
        best = self.solver.best(point, _window(query))["value"]
        overlaps = {branch: _overlaps(numbers) for branch, numbers in best.items()}
        with self.scheduler.urgent():
            matrices = attention_matrices(point.model(), overlaps, sentence)
        stages = {branch: numbers and numbers["stage"] for branch, numbers in best.items()}
        context = {"point": point.to_dict(), "stages": stages, "sentence": sentence}
        return to_json_types({**matrices, **context})

    def dynamics(self, query: Query) -> dict[str, Any]:
        """Gradient descent in the limit of large d; its value is None or preliminary at first."""
        descent = parse_descent(query, self._parse_point(query)).in_the_limit()
        job = self.theories.watch(descent, _window(query))
        with job.lock:
            return job.to_dict()

    def snippets(self, query: Query) -> dict[str, Any]:
        """Every view as Python and as a command."""
        point = self._parse_point(query)
        descent = parse_descent(query, point) if has_descent(point) else None
        training, sequence = parse_training(query, point), query.get("sequence") or EXAMPLE
        return snippets(point, descent, parse_runs(query), training, _sentence(query), sequence)

    def histogram(self, query: Query) -> dict[str, Any]:
        """Attention and counts of two trained transformers for a sequence."""
        return to_json_types(inspect_sequence(query.get("sequence") or EXAMPLE))

    def train(self, query: Query) -> dict[str, Any]:
        """Start a training."""
        point = self._parse_point(query)
        options = parse_training(query, point)
        return {"job": self.trainings.start("train", point=point.to_dict(), **options)}

    def descend(self, query: Query) -> dict[str, Any]:
        """Start gradient descent at finite d, with a record of every step."""
        descent = parse_descent(query, self._parse_point(query)).to_dict()
        seeds = parse_runs(query)
        return {"job": self.trainings.start("descend", descent=descent, seeds=seeds)}

    def job(self, query: Query) -> dict[str, Any]:
        """State and results of a training."""
        return to_json_types(self.trainings.get(query.get("job", "")).to_dict())

    def cancel(self, query: Query) -> dict[str, Any]:
        """End a training."""
        return to_json_types(self.trainings.cancel(query.get("job", "")).to_dict())

    def leave(self, query: Query) -> dict[str, Any]:
        """Remove a closed window; processes that compute for it alone end."""
        self.theories.leave(_window(query))
        return {}

    def _parse_point(self, query: Query) -> Point:
        return self.default.family.parse(query, self.default)

    def _shared_job_route(
        self, capacity: int, start: Callable[[Scheduler, Point, SharedJob], None], **fixed: Any
    ) -> Route:
        """A route to jobs that do not depend on the parameters in `fixed`."""
        jobs = SharedJobs(capacity, partial(start, self.scheduler))

        def get(query: Query) -> dict[str, Any]:
            self.scheduler.fail_endless()
            job = jobs.watch(self._parse_point(query).replace(**fixed), _window(query))
            with job.lock:
                return to_json_types(job.to_dict())

        return get


def _window(query: Query) -> str:
    name = query.get("window", "unnamed")
    if not name.isalnum() or len(name) > MAX_WINDOW_NAME:
        raise InvalidInput("window", name[:MAX_WINDOW_NAME], "must be letters and digits")
    return name


def _sentence(query: Query) -> int:
    return parse_integer("sentence", query.get("sentence", "0"), 0, LAST_SENTENCE)


def _lowest_minimum(values: Mapping[str, Any]) -> str | None:
    """The branch with the lowest training loss; a saddle does not count."""
    losses = {
        branch: numbers["train_loss"]
        for branch, numbers in values.items()
        if numbers and numbers["on_branch"] and numbers["stability"]["kind"] != "saddle"
    }
    return min(losses, key=lambda branch: losses[branch], default=None)


def _overlaps(numbers: Mapping[str, Any] | None) -> Overlaps | None:
    if not numbers or not numbers["on_branch"]:
        return None
    return Overlaps(*(np.asarray(numbers["overlaps"][name]) for name in Overlaps._fields))
