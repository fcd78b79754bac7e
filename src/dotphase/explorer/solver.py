"""Solutions at a point: a first look within a quarter of a second, then the final numbers.

1. A first look on 2^12 Gaussian points, started from the nearest point that was solved before.
2. The final numbers, in the background: those of ``dotphase solve`` with `FINAL`, which is less
   precise than its default and therefore fast.
"""

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dotphase.config.parameters import Number
from dotphase.errors import InvalidInput
from dotphase.explorer.point import MixingType, Point, branches_of, mixing_matrix
from dotphase.explorer.scheduler import ENDLESS, MAX_SECONDS, Scheduler
from dotphase.explorer.shared_jobs import SharedJob, SharedJobs
from dotphase.model import Model
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.branches import BRANCHES
from dotphase.theory.driver import evaluation_hook
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve_one

#: Settings of a first look.
FIRST_LOOK = SolverSettings(log2_points=12)
#: Settings of the final numbers.
FINAL = SolverSettings(rtol=5e-3, max_log2_points=15)
#: Number of branches that are looked at at once.
THREADS = 4
#: Longest duration of a first look, in seconds.
MAX_FIRST_LOOK = 0.25
#: Longest duration of the compilation at the start, in seconds.
MAX_WARM_UP = 600.0
#: Number of solutions that are stored to start others from.
MAX_STORED = 256
#: Number of points whose final numbers stay.
MAX_POINTS = 64
#: Final numbers come first.
PRIORITY = 0
#: Names of the stages on the page.
STAGES = ("first look", "final")


class Solver:
    """Solves points for the page and stores the solutions to start others from."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.jobs = SharedJobs(MAX_POINTS, self._start_final)
        self._stored: OrderedDict[tuple[Point, str], Overlaps] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dotphase-first")
        self._endless: list[Future[Any]] = []

    def first_look(self, point: Point) -> dict[str, Any]:
        """Solve all branches within `MAX_FIRST_LOOK`; None for a branch that takes longer.

        A model that does not return from one evaluation within `MAX_SECONDS` is refused.
        """
        model = point.model()
        self._endless = [future for future in self._endless if not future.done()]
        deadline = time.monotonic() + MAX_FIRST_LOOK
        with self.scheduler.urgent():
            futures = {
                branch: self._pool.submit(self._solve_first, point, model, branch, deadline)
                for branch in branches_of(model)
            }
            patience = MAX_SECONDS if len(self._endless) < THREADS else 0.0
            unfinished = wait(futures.values(), patience).not_done
        if unfinished:
            self._endless += unfinished
            raise InvalidInput("model", point.reference, ENDLESS.format(MAX_SECONDS))
        solutions = {branch: future.result() for branch, future in futures.items()}
        return {branch: sol and to_page(sol, STAGES[0]) for branch, sol in solutions.items()}

    def best(self, point: Point, window: str) -> dict[str, Any]:
        """The most precise numbers so far, after a first look if there are none."""
        self.scheduler.fail_endless()
        job = self.jobs.watch(point, window)
        if job.value is None:
            first = self.first_look(point)
            with job.lock:
                final: dict[str, Any] = job.value or {}
                job.value = {name: final.get(name) or numbers for name, numbers in first.items()}
        with job.lock:
            return job.to_dict()

    def close(self) -> None:
        """Wait for first looks under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def warm_up(self, point: Point) -> None:
        """Compile everything that a first look needs."""
        model = point.model()
        for branch in branches_of(model):
            self._solve_first(point, model, branch, time.monotonic() + MAX_WARM_UP)

    @in_double_precision
    def _solve_first(
        self, point: Point, model: Model, branch: str, deadline: float
    ) -> Solution | None:
        """Solve a branch from the nearest stored solution, or from its own initialization.

        Both may lead to another branch: the result says so for now. The approach from a distant
        alpha, which `dotphase.solve` takes then, needs seconds and runs in the background.
        """
        candidates = [self._nearest(point, model, branch), BRANCHES[branch].initial_overlaps(model)]
        solution: Solution | None = None
        for initial in candidates:
            if initial is None:
                continue
            try:
                with evaluation_hook(partial(_check_deadline, deadline)):
                    solved = solve_one(model, point.alpha, initial, FIRST_LOOK)
            except _DeadlineExceeded:
                return solution
            solution = replace(solved, branch=branch)
            if solution.on_branch:
                self._store(point, branch, solution)
                break
        return solution

    def _nearest(self, point: Point, model: Model, branch: str) -> Overlaps | None:
        """The overlaps of the nearest stored solution on a branch."""
        coordinates, kind = _coordinates(point)
        with self._lock:
            stored = [(*_coordinates(key[0]), overlaps)
                      for key, overlaps in self._stored.items() if key[1] == branch]  # fmt: skip
        candidates = [
            (float(np.sum((neighbor - coordinates) ** 2)), overlaps)
            for neighbor, neighbor_kind, overlaps in stored
            if neighbor_kind == kind
        ]
        if not candidates:
            return None
        _, overlaps = min(candidates, key=lambda candidate: candidate[0])
        return _rescale(overlaps, float(model.rho[0]))

    def _store(self, point: Point, branch: str, solution: Solution) -> None:
        # q, V and theta are proportional to sigma^2.
        per_rho = _rescale(solution.overlaps, 1 / float(solution.model.rho[0]))
        with self._lock:
            self._stored[point, branch] = per_rho
            self._stored.move_to_end((point, branch))
            while len(self._stored) > MAX_STORED:
                self._stored.popitem(last=False)

    def _start_final(self, point: Point, job: SharedJob) -> None:
        """Compute the final numbers in the background."""
        model = point.model()
        names = branches_of(model)

        def finish(branch: str, solution: Solution) -> None:
            if solution.on_branch:
                self._store(point, branch, solution)
            with job.lock:
                numbers = {**dict.fromkeys(names), **(job.value or {})}
                job.value = {**numbers, branch: to_page(solution, STAGES[1])}
                job.progress += 1 / len(names)
                job.done = job.progress > 1 - 0.5 / len(names)

        for branch in names:
            task = partial(solve_one, model, point.alpha, branch, FINAL)
            self.scheduler.add(task, PRIORITY, partial(finish, branch), job)


class _DeadlineExceeded(BaseException):
    """Raised inside a first look that takes too long."""


def _check_deadline(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise _DeadlineExceeded


def _coordinates(point: Point) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Coordinates that measure distances between points, and values that neighbors share."""
    numbers, shared = [np.log(point.alpha)], []
    for name, value in point.values:
        parameter = point.family.parameters[name]
        if isinstance(parameter.type, Number) and (slider := parameter.slider):
            width = slider.high - slider.low
            numbers.append(0.5 * np.log(value) if slider.logarithmic else 4 * value / width)
        elif isinstance(parameter.type, MixingType):
            numbers += [2 * mixing_matrix(value)[i][i] for i in (0, 1)]
        else:
            shared.append(value)
    return np.asarray(numbers), (point.reference, *shared)


def _rescale(overlaps: Overlaps, factor: float) -> Overlaps:
    """Overlaps of tokens whose variance is larger by a factor."""
    q, m, V, theta = overlaps
    return Overlaps(q * factor, m, V * factor, theta * factor)


def to_page(solution: Solution, stage: str) -> dict[str, Any]:
    """The values of a solution that the page shows."""
    values = solution.to_dict()
    names = ("found", "norms", "train_loss", "test_error", "linear_test_error", "stderr",
             "converged", "message", "stability", "log2_points", "overlaps", "seconds")  # fmt: skip
    return {
        **{name: values[name] for name in names},
        "on_branch": solution.on_branch,
        "stage": stage,
    }
