"""The branches against alpha at the other parameters of a point, and where they cross."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.experiments.theory.diagram import assemble_diagram
from dotphase.explorer.point import Point, branches_of
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import Growing
from dotphase.model import Model
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_one

#: The grid of a curve, as text of the command line and as numbers.
GRID = (0.1, 2.5, 25)
ALPHAS = np.linspace(*GRID)
#: log2 of the Gaussian points.
POINTS = 13
#: The same on both sides of alpha_c, and how far from it these are.
MANY, REACH = 16, 0.05
#: After the numbers of the point itself.
PRIORITY = 1

QUANTITIES = ("train_loss", "test_error", "m", "theta", "q", "V")


def begin(scheduler: Scheduler, point: Point, growing: Growing) -> None:
    """Compute the curve through a point; what is not computed yet is None."""
    alphas = ALPHAS.tolist()
    model, settings = point.model(), SolverSettings(log2_points=POINTS)
    names = branches_of(model)
    growing.value = empty(alphas, names)
    chains: dict[str, list[Solution]] = {}

    def progress(branch: str, solution: Solution) -> None:
        with growing.lock:
            fill(growing.value, branch, alphas.index(solution.alpha), solution)
            growing.progress = min(growing.progress + 1 / (len(names) * len(alphas)), 0.99)

    def finish(branch: str, solutions: list[Solution]) -> None:
        with growing.lock:
            chains[branch] = solutions
            for index, solution in enumerate(solutions):
                fill(growing.value, branch, index, solution)
            is_last = len(chains) == len(names)
        if not is_last:
            return
        # Without the lock, which every request for the curve takes.
        crossing = critical(model, chains, ALPHAS, settings)
        with growing.lock:
            growing.value |= crossing
            growing.progress, growing.done = 1.0, math.isnan(crossing["alpha_c"])
        if not growing.done:
            sharpen(scheduler, model, names, crossing["alpha_c"], growing)

    for branch in names:
        job = partial(continue_one, model, alphas, branch, settings, partial(progress, branch))
        scheduler.add(job, PRIORITY, partial(finish, branch), growing)


def empty(alphas: list[float], names: tuple[str, ...]) -> dict[str, Any]:
    """A curve of which nothing is known."""
    parts = (*QUANTITIES, "kind", "trusted")
    branches = {branch: {name: [None] * len(alphas) for name in parts} for branch in names}
    return {"alpha": alphas, "linear_test_error": None, "branches": branches}


def sharpen(
    scheduler: Scheduler, model: Model, names: tuple[str, ...], near: float, growing: Growing
) -> None:
    """alpha_c once more, from many points on both sides of where it is."""
    grid, settings = near + np.asarray([-REACH, REACH]), SolverSettings(log2_points=MANY)
    chains: dict[str, list[Solution]] = {}

    def finish(branch: str, solutions: list[Solution]) -> None:
        with growing.lock:
            chains[branch] = solutions
            is_last = len(chains) == len(names)
        if not is_last:
            return
        crossing = critical(model, chains, grid, settings)
        with growing.lock:
            if not math.isnan(crossing["alpha_c"]):
                growing.value |= {**crossing, "alpha_l": growing.value["alpha_l"]}
            growing.done = True

    for branch in names:
        job = partial(continue_one, model, grid.tolist(), branch, settings)
        scheduler.add(job, PRIORITY, partial(finish, branch), growing)


def critical(
    model: Model,
    chains: Mapping[str, list[Solution]],
    alphas: Float[np.ndarray, " alpha"],
    settings: SolverSettings,
) -> dict[str, Any]:
    """alpha_c and alpha_l as a phase diagram of one line has them, and their trust.

    `alpha_c_stderr` is that of the quadrature; the interpolation between the points of the grid
    adds less than that, since the slopes of the losses are known.
    """
    informed = [name for name in chains if name != "positional"]
    rows = [chains[name] for name in (*informed, "positional")]
    line = assemble_diagram([model], rows, alphas, np.zeros(1), "line", settings).isel(line=0)
    found: dict[str, Any] = {name: float(line[name]) for name in ("alpha_c", "alpha_l")}
    near = np.abs(alphas - found["alpha_c"]) <= alphas[1] - alphas[0]
    found["alpha_c_trusted"] = bool(line["trusted"].values[:, near].all())
    found["alpha_c_stderr"] = None
    if near.any():
        noise = np.hypot(*line["train_loss_stderr"].values[:, near]).max()
        slopes = line["loss_slope"].values[:, near]
        found["alpha_c_stderr"] = float(noise / np.abs(slopes[0] - slopes[1]).mean())
    return found


def fill(curve: dict[str, Any], branch: str, index: int, solution: Solution) -> None:
    """Write one solution into a curve; where the branch does not exist nothing is drawn."""
    there = solution.on_branch
    curve["linear_test_error"] = solution.linear_test_error
    for name in QUANTITIES:
        curve["branches"][branch][name][index] = solution.value(name) if there else None
    curve["branches"][branch]["kind"][index] = solution.stability.kind if there else None
    curve["branches"][branch]["trusted"][index] = solution.stability.trusted if there else None
