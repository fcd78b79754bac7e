"""The phase diagram of the page: loaded from disk, or computed in the background.

A diagram that is not stored is computed twice, on a coarse grid and then on the grid of the
packaged diagrams. That of the paper's family is then stored in the user's cache folder. A user's
own family has alpha and its first number as axes.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase.config.serialization import to_json_types
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.diagram import SIDES, assemble_diagram
from dotphase.experiments.theory.solution_variables import is_minimum
from dotphase.explorer import stored_diagrams
from dotphase.explorer.point import Point, branches_of
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import SharedJob
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_one

#: Lines of the fine grid for each line of the coarse one.
COARSE_STRIDE = 3
#: log2 of the Gaussian points of the coarse diagram.
COARSE_LOG2_POINTS = 12
#: Share of the progress that the coarse diagram has.
COARSE_SHARE = 0.1
#: Diagrams come last.
PRIORITY = 5
#: Number of values on the vertical axis of a user's own family.
ROWS = 13


def start_diagram(scheduler: Scheduler, point: Point, job: SharedJob) -> None:
    """Load or compute the diagram that contains a point."""
    if point.family.vertical is None:
        job.fail("this model has no second number to vary")
        return
    dataset = stored_diagrams.load(point)
    if dataset is None:
        _compute(scheduler, point, job, COARSE_STRIDE)
    else:
        job.value, job.progress, job.done = to_page(dataset), 1.0, True


def _compute(scheduler: Scheduler, point: Point, job: SharedJob, stride: int) -> None:
    """Compute a diagram on every `stride`-th line of the fine grid; a fine one follows a coarse."""
    name, is_coarse = str(point.family.vertical), stride > 1
    alphas, values = stored_diagrams.ALPHAS[::stride], vertical_values(point)[::stride]
    try:
        models = [point.replace(**{name: float(value)}).model() for value in values]
    except InvalidInput as error:
        job.fail(str(error))
        return
    log2_points = COARSE_LOG2_POINTS if is_coarse else stored_diagrams.LOG2_POINTS
    share = COARSE_SHARE if is_coarse else 1 - COARSE_SHARE
    settings = SolverSettings(log2_points=log2_points)
    informed = [branch for branch in branches_of(models[0]) if branch != "positional"]
    pairs = [(branch, model) for branch in (*informed, "positional") for model in models]
    chains = {
        index: partial(continue_one, model, alphas.tolist(), branch, settings)
        for index, (branch, model) in enumerate(pairs)
    }

    def progress(index: int, chain: list[Solution]) -> None:
        with job.lock:
            job.progress += share / len(pairs)

    def finish(solved: dict[int, list[Solution]]) -> None:
        rows = list(solved.values())
        dataset = assemble_diagram(models, rows, alphas, values, name, settings)
        job.value = to_page(stored_diagrams.select_drawn(dataset))
        if is_coarse:
            _compute(scheduler, point, job, 1)
        else:
            stored_diagrams.store(point, dataset)
            job.progress, job.done = 1.0, True

    scheduler.add_all(chains, PRIORITY, finish, job, progress)


def vertical_values(point: Point) -> np.ndarray:
    """The values on the vertical axis."""
    if point.family.is_paper:
        return stored_diagrams.OMEGAS
    slider = point.family.parameters[str(point.family.vertical)].slider
    assert slider is not None
    # A number that must not be zero begins at the first step of its slider.
    low = slider.low or slider.step
    return np.round(np.linspace(low, slider.high, ROWS), 6)


def to_page(dataset: xr.Dataset) -> dict[str, Any]:
    """The values of a diagram that the page draws."""
    semantic, positional = (dataset.sel(branch=name) for name in SIDES)
    vertical = next(str(name) for name in dataset["alpha_c"].dims)
    semantic_is_minimum, positional_is_minimum = (
        is_minimum(side).values for side in (semantic, positional)
    )
    both = semantic_is_minimum & positional_is_minimum
    gap = np.where(both, semantic["train_loss"].values - positional["train_loss"].values, np.nan)
    wins = np.where(both, gap < 0, semantic_is_minimum)
    has_reached = stored_diagrams.REACHED in dataset
    if has_reached:
        reached = dataset[stored_diagrams.REACHED].transpose("omega", "alpha")
        gap = np.where(np.isnan(gap), reached, gap)
    trusted = np.where(wins, semantic["trusted"].values, positional["trusted"].values)
    value: dict[str, Any] = to_json_types(
        {
            "alpha": np.round(dataset["alpha"].values.astype(float), 6),
            "vertical": np.round(dataset[vertical].values.astype(float), 6),
            "loss_difference": gap.astype(float),
            "trusted": trusted.astype(bool),
            "reached": has_reached,
            "kind": {name: dataset["kind"].sel(branch=name).values for name in SIDES},
            "alpha_c": dataset["alpha_c"].values.astype(float),
            "alpha_l": dataset["alpha_l"].values.astype(float),
        }
    )
    return value
