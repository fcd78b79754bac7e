"""Both branches against alpha at the other parameters of a point."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dotphase.app.scheduler import Scheduler
from dotphase.app.shelf import Growing
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


def begin(scheduler: Scheduler, point: Point, growing: Growing) -> None:
    """Compute the curve through a point; what is not computed yet is None."""
    alphas = ALPHAS.tolist()
    growing.value = empty(alphas)
    model, settings = point.model(), SolverSettings(log2_points=POINTS)

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
        steps = continuing(model, alphas, branch, settings, partial(progress, branch))
        scheduler.add(steps, PRIORITY, partial(finish, branch), growing)


def empty(alphas: list[float]) -> dict[str, Any]:
    """A curve of which nothing is known."""
    nothing: dict[str, Any] = {
        branch: {name: [None] * len(alphas) for name in (*QUANTITIES, "kind", "trusted")}
        for branch in BRANCHES
    }
    return {"alpha": alphas, "linear_test_error": None, "finished": [], **nothing}


def fill(curve: dict[str, Any], branch: str, index: int, solution: Solution) -> None:
    """Write one solution into a curve; where the branch does not exist nothing is drawn."""
    there = solution.there
    curve["linear_test_error"] = solution.linear_test_error
    for name in QUANTITIES:
        curve[branch][name][index] = solution.value(name) if there else None
    curve[branch]["kind"][index] = solution.stability.kind if there else None
    curve[branch]["trusted"][index] = solution.stability.trusted if there else None
