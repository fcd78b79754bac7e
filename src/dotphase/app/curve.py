"""Both branches against alpha at the other parameters of a point."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dotphase.app.scheduler import Scheduler, Task
from dotphase.app.shelf import Growing, Shelf
from dotphase.app.solver import BRANCHES
from dotphase.app.state import Point
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continuing

#: The grid of a curve, as text of the command line and as numbers.
GRID = (0.1, 2.5, 25)
ALPHAS = np.linspace(*GRID)
#: log2 of the Gaussian points.
POINTS = 13
#: More pressing than final digits, less than the second stage of a point.
PRIORITY = 1

QUANTITIES = ("train_loss", "test_error", "m", "theta", "q", "V")


class Curves:
    """Curves, computed once and kept."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.shelf = Shelf(16)

    def get(self, point: Point, window: str) -> Growing:
        """The curve through a point; what is not computed yet is None."""
        key = point.at(alpha=1.0)
        return self.shelf.watch(key, window, partial(self._start, key))

    def _start(self, point: Point, growing: Growing) -> None:
        alphas = ALPHAS.tolist()
        growing.value = empty(alphas)
        model = point.model()

        def progress(branch: str, solution: Solution) -> None:
            with growing.lock:
                fill(growing.value, branch, alphas.index(solution.alpha), solution)
                growing.progress = min(growing.progress + 0.5 / len(alphas), 0.99)

        def finish(branch: str, solutions: list[Solution]) -> None:
            with growing.lock:
                for index, solution in enumerate(solutions):
                    fill(growing.value, branch, index, solution)
                growing.value["finished"].append(branch)
                growing.done = len(growing.value["finished"]) == len(BRANCHES)
                growing.progress = 1.0 if growing.done else growing.progress

        for branch in BRANCHES:
            steps = continuing(
                model, alphas, branch, SolverSettings(log2_points=POINTS), partial(progress, branch)
            )
            self.scheduler.add(
                Task(steps, PRIORITY, partial(finish, branch), growing.fail, growing.stop)
            )


def empty(alphas: list[float]) -> dict[str, Any]:
    """A curve of which nothing is known."""
    nothing: dict[str, Any] = {
        branch: {name: [None] * len(alphas) for name in (*QUANTITIES, "trusted")}
        for branch in BRANCHES
    }
    return {"alpha": alphas, "linear_test_error": None, "finished": [], **nothing}


def fill(curve: dict[str, Any], branch: str, index: int, solution: Solution) -> None:
    """Write one solution into a curve; where the branch does not exist nothing is drawn."""
    there = solution.there
    curve["linear_test_error"] = solution.linear_test_error
    for name in QUANTITIES:
        curve[branch][name][index] = solution.value(name) if there else None
    curve[branch]["trusted"][index] = solution.stability.trusted if there else None
