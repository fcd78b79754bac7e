"""The branches against alpha at the other parameters of a point, and the crossing of their losses.

The curve is first computed on a grid. The crossing is then computed again from many Gaussian points
on both sides of it.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.experiments.theory.diagram import assemble_diagram
from dotphase.explorer.point import Point, branches_of
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import SharedJob
from dotphase.model import Model
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_one

#: First and last alpha of a curve, and their number.
GRID = (0.1, 2.5, 25)
ALPHAS = np.linspace(*GRID)
#: log2 of the Gaussian points of a curve.
LOG2_POINTS = 13
#: log2 of the Gaussian points on both sides of alpha_c.
CROSSING_LOG2_POINTS = 16
#: Distance of these two points from alpha_c.
CROSSING_DISTANCE = 0.05
#: Curves come after the numbers of the point.
PRIORITY = 1

QUANTITIES = ("train_loss", "test_error", "m", "theta", "q", "V")

#: Solutions of each branch along alpha.
Chains = Mapping[str, list[Solution]]


def start_curve(scheduler: Scheduler, point: Point, job: SharedJob) -> None:
    """Compute the curve through a point; its missing values are None."""
    alphas, model = ALPHAS.tolist(), point.model()
    settings, branches = SolverSettings(log2_points=LOG2_POINTS), branches_of(model)
    job.value = _empty_curve(alphas, branches)

    def progress(branch: str, solution: Solution) -> None:
        with job.lock:
            _write_solution(job.value, branch, alphas.index(solution.alpha), solution)
            job.progress = min(job.progress + 1 / (len(branches) * len(alphas)), 0.99)

    def finish_branch(branch: str, chain: list[Solution]) -> None:
        # The continuation may have found missed points on its way back.
        with job.lock:
            for index, solution in enumerate(chain):
                _write_solution(job.value, branch, index, solution)

    def finish(chains: Chains) -> None:
        crossing = find_crossing(model, chains, ALPHAS, settings)
        with job.lock:
            job.value |= crossing
            job.progress, job.done = 1.0, math.isnan(crossing["alpha_c"])
        if not job.done:
            _refine_crossing(scheduler, model, branches, crossing["alpha_c"], job)

    chains = {
        branch: partial(continue_one, model, alphas, branch, settings, partial(progress, branch))
        for branch in branches
    }
    scheduler.add_all(chains, PRIORITY, finish, job, finish_branch)


def _refine_crossing(
    scheduler: Scheduler, model: Model, branches: tuple[str, ...], alpha_c: float, job: SharedJob
) -> None:
    """Compute alpha_c again from many points on both sides of it."""
    alphas = alpha_c + np.asarray([-CROSSING_DISTANCE, CROSSING_DISTANCE])
    settings = SolverSettings(log2_points=CROSSING_LOG2_POINTS)

    def finish(chains: Chains) -> None:
        crossing = find_crossing(model, chains, alphas, settings)
        with job.lock:
            if not math.isnan(crossing["alpha_c"]):
                job.value |= {**crossing, "alpha_l": job.value["alpha_l"]}
            job.done = True

    chains = {
        branch: partial(continue_one, model, alphas.tolist(), branch, settings)
        for branch in branches
    }
    scheduler.add_all(chains, PRIORITY, finish, job)


def find_crossing(
    model: Model, chains: Chains, alphas: Float[np.ndarray, " alpha"], settings: SolverSettings
) -> dict[str, Any]:
    """alpha_c and alpha_l as in a phase diagram of one row.

    `alpha_c_stderr` is that of the quadrature. The interpolation between the points of the grid
    adds less, since the slopes of the losses are known.
    """
    informed = [name for name in chains if name != "positional"]
    rows = [chains[name] for name in (*informed, "positional")]
    row = assemble_diagram([model], rows, alphas, np.zeros(1), "row", settings).isel(row=0)
    crossing: dict[str, Any] = {name: float(row[name]) for name in ("alpha_c", "alpha_l")}
    near = np.abs(alphas - crossing["alpha_c"]) <= alphas[1] - alphas[0]
    crossing["alpha_c_trusted"] = bool(row["trusted"].values[:, near].all())
    crossing["alpha_c_stderr"] = None
    if near.any():
        noise = np.hypot(*row["train_loss_stderr"].values[:, near]).max()
        slopes = row["loss_slope"].values[:, near]
        crossing["alpha_c_stderr"] = float(noise / np.abs(slopes[0] - slopes[1]).mean())
    return crossing


def _empty_curve(alphas: list[float], branches: tuple[str, ...]) -> dict[str, Any]:
    names = (*QUANTITIES, "kind", "trusted")
    empty = {branch: {name: [None] * len(alphas) for name in names} for branch in branches}
    return {"alpha": alphas, "linear_test_error": None, "branches": empty}


def _write_solution(curve: dict[str, Any], branch: str, index: int, solution: Solution) -> None:
    """Write a solution into a curve, which has a gap where the branch does not exist."""
    curve["linear_test_error"] = solution.linear_test_error
    values: dict[str, Any] = {}
    if solution.on_branch:
        values = {name: solution.value(name) for name in QUANTITIES}
        values |= {"kind": solution.stability.kind, "trusted": solution.stability.trusted}
    for name, column in curve["branches"][branch].items():
        column[index] = values.get(name)
