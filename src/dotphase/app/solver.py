"""Both branches at a point: a first look at once, better numbers behind it.

1. A first look on 2^12 points, started from the nearest point solved before.
2. 2^16 points: the numbers of ``dotphase solve --points 16``.
3. The tolerance of the library: the numbers of ``dotphase solve``.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from dotphase._numerics.precision import in_double_precision
from dotphase.app.scheduler import Scheduler
from dotphase.app.shelf import Growing, Shelf
from dotphase.app.state import Point
from dotphase.theory import branches
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solving
from dotphase.theory.steps import Stepper

BRANCHES = ("semantic", "positional")

#: log2 of the points of a first look and of the second stage.
FIRST, SECOND = 12, 16
#: Seconds that a first look may take; what is not found by then is left to the background.
BUDGET = 0.25
#: Solutions remembered as starting points.
REMEMBERED = 256
#: Priorities of the stages in the background.
SOON, LATER = 0, 2
#: Names of the stages, for the page.
STAGES = ("first look", f"2^{SECOND} points", "final")


class Solver:
    """Solves points for the page and remembers where they were."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.shelf = Shelf(64, self._begin)
        self._starts: OrderedDict[tuple[Point, str], Overlaps] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(2 * len(BRANCHES), thread_name_prefix="dotphase-first")

    def first_look(self, point: Point) -> dict[str, Any]:
        """Both branches within `BUDGET`; None for one that was not found in time."""
        deadline = time.monotonic() + BUDGET
        with self.scheduler.urgent():
            futures = {
                branch: self._pool.submit(self._quick, point, branch, deadline)
                for branch in BRANCHES
            }
            found = {branch: future.result() for branch, future in futures.items()}
        return {branch: one and describe(one, branch, 0) for branch, one in found.items()}

    def best(self, point: Point, window: str) -> dict[str, Any]:
        """The best numbers there are now; a first look if there are none."""
        growing = self.shelf.watch(point, window)
        if len(growing.value or {}) < len(BRANCHES):
            first = self.first_look(point)
            with growing.lock:
                growing.value = {**first, **(growing.value or {})}
        with growing.lock:
            return growing.to_dict()

    def close(self) -> None:
        """Wait for first looks under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    @in_double_precision
    def warm_up(self) -> None:
        """Compile everything that a first look needs."""
        for branch in BRANCHES:
            self._quick(Point(), branch, time.monotonic() + 600)

    @in_double_precision
    def _quick(self, point: Point, branch: str, deadline: float) -> Solution | None:
        """A branch from the nearest point known, or from its own start; None if out of time.

        Where both lead elsewhere, that is the answer for now: to search from afar, as
        `dotphase.solve` does, takes seconds and is left to the background.
        """
        model = point.model()
        near = self._nearest(point, branch)
        own = branches.BRANCHES[branch].start(model)
        solution: Solution | None = None
        for start in (own,) if near is None else (near, own):
            stepper = Stepper(solving(model, point.alpha, start, SolverSettings(log2_points=FIRST)))
            while not stepper.done:
                if time.monotonic() > deadline:
                    return solution
                stepper.step()
            solution = stepper.result
            if on_branch(solution, branch):
                self._remember(point, branch, solution)
                break
        return solution

    def _nearest(self, point: Point, branch: str) -> Overlaps | None:
        """The overlaps of the nearest remembered point on a branch."""
        with self._lock:
            known = [(key, value) for key, value in self._starts.items() if key[1] == branch]
        if not known:
            return None
        here = _position(point)
        distances = [float(np.sum((_position(key[0]) - here) ** 2)) for key, _ in known]
        (place, _), overlaps = known[int(np.argmin(distances))]
        # Overlaps hold sigma: q, V and theta go with its square.
        scale = np.square(point.sigma / place.sigma)
        return Overlaps(overlaps.q * scale, overlaps.m, overlaps.V * scale, overlaps.theta * scale)

    def _remember(self, point: Point, branch: str, solution: Solution) -> None:
        with self._lock:
            self._starts[point, branch] = solution.overlaps
            self._starts.move_to_end((point, branch))
            while len(self._starts) > REMEMBERED:
                self._starts.popitem(last=False)

    def _begin(self, point: Point, growing: Growing) -> None:
        """Better and better numbers, in the background."""
        model = point.model()
        steps = len(BRANCHES) * 2

        def finish(branch: str, stage: int, solution: Solution) -> None:
            if on_branch(solution, branch):
                self._remember(point, branch, solution)
            with growing.lock:
                growing.value = {**(growing.value or {}), branch: describe(solution, branch, stage)}
                growing.progress += 1 / steps
                growing.done = growing.progress > 1 - 0.5 / steps
            if stage == 1:
                add(branch, 2)

        def add(branch: str, stage: int) -> None:
            log2_points, priority = (SECOND, SOON) if stage == 1 else (None, LATER)
            steps = solving(model, point.alpha, branch, SolverSettings(log2_points=log2_points))
            self.scheduler.add(steps, priority, partial(finish, branch, stage), growing)

        for branch in BRANCHES:
            add(branch, 1)


def _position(point: Point) -> np.ndarray:
    """Coordinates in which neighbouring points are neighbours."""
    data = [np.log(point.alpha), 2 * np.log(point.sigma), 0.5 * np.log(point.ridge)]
    teacher = point.omega * np.asarray([4, 3 * point.matrix[0][0], 3 * point.matrix[1][1]])
    return np.asarray([*data, *teacher])


def on_branch(solution: Solution, branch: str) -> bool:
    """Whether a solution, from whatever start, is a fixed point of a branch."""
    return solution.converged and solution.found == branch


def describe(solution: Solution, branch: str, stage: int) -> dict[str, Any]:
    """A solution as the page shows it."""
    full = solution.to_dict()
    names = ("found", "norms", "train_loss", "test_error", "linear_test_error", "stderr",
             "converged", "message", "stability", "log2_points", "overlaps")  # fmt: skip
    return {
        **{name: full[name] for name in names},
        "there": on_branch(solution, branch),
        "stage": STAGES[stage],
        "seconds": solution.seconds,
    }
