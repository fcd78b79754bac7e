"""The branches at a point: a first look at once, better numbers behind it.

1. A first look on 2^12 points, started from the nearest point solved before.
2. The final numbers, those of ``dotphase solve`` with `FINAL`: coarser than it is by itself, so
   that they are there before one has looked away.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dotphase.config.parameters import Number
from dotphase.explorer.point import Entries, Point, branches_of, matrix_of
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import Growing, Shelf
from dotphase.model import Model
from dotphase.runtime.precision import in_double_precision
from dotphase.theory import branches
from dotphase.theory.driver import evaluation_hook
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve_one

#: Settings of a first look.
FIRST_LOOK = SolverSettings(log2_points=12)
#: How precise the final numbers are.
FINAL = SolverSettings(rtol=5e-3, max_log2_points=15)
#: Seconds that a first look may take; what is not found by then is left to the background.
BUDGET = 0.25
#: Solutions remembered as starting points.
REMEMBERED = 256
#: Nothing in the background is more pressing.
PRIORITY = 0
#: Names of the stages, for the page.
STAGES = ("first look", "final")


class Solver:
    """Solves points for the page and remembers where they were."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.shelf = Shelf(64, self._begin)
        self._starts: OrderedDict[tuple[Point, str], Overlaps] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="dotphase-first")

    def first_look(self, point: Point) -> dict[str, Any]:
        """All branches within `BUDGET`; None for one that was not found in time."""
        model = point.model()
        deadline = time.monotonic() + BUDGET
        with self.scheduler.urgent():
            futures = {
                branch: self._pool.submit(self._quick, point, model, branch, deadline)
                for branch in branches_of(model)
            }
            found = {branch: future.result() for branch, future in futures.items()}
        return {branch: one and describe(one, 0) for branch, one in found.items()}

    def best(self, point: Point, window: str) -> dict[str, Any]:
        """The best numbers there are now; a first look if there are none."""
        growing = self.shelf.watch(point, window)
        if growing.value is None:
            first = self.first_look(point)
            with growing.lock:
                final: dict[str, Any] = growing.value or {}
                growing.value = {name: final.get(name) or one for name, one in first.items()}
        with growing.lock:
            return growing.to_dict()

    def close(self) -> None:
        """Wait for first looks under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    @in_double_precision
    def warm_up(self, point: Point) -> None:
        """Compile everything that a first look needs."""
        model = point.model()
        for branch in branches_of(model):
            self._quick(point, model, branch, time.monotonic() + 600)

    @in_double_precision
    def _quick(self, point: Point, model: Model, branch: str, deadline: float) -> Solution | None:
        """A branch from the nearest point known, or from its own start; None if out of time.

        Where both lead elsewhere, that is the answer for now: to search from afar, as
        `dotphase.solve` does, takes seconds and is left to the background.
        """
        near = self._nearest(point, model, branch)
        own = branches.BRANCHES[branch].initial_overlaps(model)
        solution: Solution | None = None
        for start in (own,) if near is None else (near, own):
            try:
                with evaluation_hook(partial(_check_deadline, deadline)):
                    solved = solve_one(model, point.alpha, start, FIRST_LOOK)
            except _OutOfTime:
                return solution
            solution = replace(solved, branch=branch)
            if solution.on_branch:
                self._remember(point, branch, solution)
                break
        return solution

    def _nearest(self, point: Point, model: Model, branch: str) -> Overlaps | None:
        """The overlaps of the nearest remembered point on a branch."""
        here, kind = _position(point)
        with self._lock:
            known = [
                (place, overlaps)
                for (other, name), overlaps in self._starts.items()
                if name == branch and (place := _position(other))[1] == kind
            ]
        if not known:
            return None
        distances = [float(np.sum((place[0] - here) ** 2)) for place, _ in known]
        _, overlaps = known[int(np.argmin(distances))]
        return _scaled(overlaps, float(model.rho[0]))

    def _remember(self, point: Point, branch: str, solution: Solution) -> None:
        with self._lock:
            # q, V and theta go with the square of sigma.
            per_rho = _scaled(solution.overlaps, 1 / float(solution.model.rho[0]))
            self._starts[point, branch] = per_rho
            self._starts.move_to_end((point, branch))
            while len(self._starts) > REMEMBERED:
                self._starts.popitem(last=False)

    def _begin(self, point: Point, growing: Growing) -> None:
        """The final numbers, in the background."""
        model = point.model()
        names = branches_of(model)

        def finish(branch: str, solution: Solution) -> None:
            if solution.on_branch:
                self._remember(point, branch, solution)
            with growing.lock:
                known = {**dict.fromkeys(names), **(growing.value or {})}
                growing.value = {**known, branch: describe(solution, 1)}
                growing.progress += 1 / len(names)
                growing.done = growing.progress > 1 - 0.5 / len(names)

        for branch in names:
            job = partial(solve_one, model, point.alpha, branch, FINAL)
            self.scheduler.add(job, PRIORITY, partial(finish, branch), growing)


class _OutOfTime(BaseException):
    """Raised inside a first look that takes too long."""


def _check_deadline(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise _OutOfTime


def _position(point: Point) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Coordinates in which neighbouring points are neighbours, and what neighbours share."""
    numbers, words = [np.log(point.alpha)], []
    for name, value in point.values:
        one = point.family.parameters[name]
        if isinstance(one.type, Number) and one.slider:
            low, high = one.slider.low, one.slider.high
            near = 0.5 * np.log(value) if one.slider.logarithmic else 4 * value / (high - low)
            numbers.append(near)
        elif isinstance(one.type, Entries):
            numbers += [2 * matrix_of(value)[i][i] for i in (0, 1)]
        else:
            words.append(value)
    return np.asarray(numbers), (point.reference, *words)


def _scaled(overlaps: Overlaps, factor: float) -> Overlaps:
    """Overlaps of tokens whose variance is larger by a factor."""
    q, m, V, theta = overlaps
    return Overlaps(q * factor, m, V * factor, theta * factor)


def describe(solution: Solution, stage: int) -> dict[str, Any]:
    """A solution as the page shows it."""
    full = solution.to_dict()
    names = ("found", "norms", "train_loss", "test_error", "linear_test_error", "stderr",
             "converged", "message", "stability", "log2_points", "overlaps")  # fmt: skip
    return {
        **{name: full[name] for name in names},
        "on_branch": solution.on_branch,
        "stage": STAGES[stage],
        "seconds": solution.seconds,
    }
