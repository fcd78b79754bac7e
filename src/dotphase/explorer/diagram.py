"""The phase diagram of the page: stored ones at once, others as they are computed.

A diagram that is not stored is computed twice in the background, coarse and then as fine as
those that ship with the package; the fine one of the paper's family is kept in the user's cache
folder. A family of the user's own has alpha and its first number as axes.
"""

from __future__ import annotations

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
from dotphase.explorer.shared_jobs import Growing
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_one

#: Every which line of the fine grid the coarse one has, and log2 of its points.
COARSE, COARSE_POINTS = 3, 12
#: Nothing waits longer than a diagram.
PRIORITY = 5
#: Values of the first number of a family of the user's own.
ROWS = 13


def begin(scheduler: Scheduler, point: Point, growing: Growing) -> None:
    """Load or compute the diagram that a point lies in."""
    if point.family.across is None:
        growing.give_up("this model has no number that could be the other axis")
        return
    dataset = stored_diagrams.load(point)
    if dataset is None:
        compute(scheduler, point, growing, COARSE)
    else:
        growing.value, growing.progress, growing.done = describe(dataset), 1.0, True


def compute(scheduler: Scheduler, point: Point, growing: Growing, every: int) -> None:
    """Compute every so many lines of the fine grid; after a coarse diagram the fine one."""
    name = point.family.across
    assert name is not None
    alphas, values = stored_diagrams.ALPHAS[::every], rows_of(point)[::every]
    try:
        models = [point.at(**{name: float(value)}).model() for value in values]
    except InvalidInput as error:
        growing.give_up(str(error))
        return
    log2_points, share = (COARSE_POINTS, 0.1) if every > 1 else (stored_diagrams.POINTS, 0.9)
    settings = SolverSettings(log2_points=log2_points)
    informed = [branch for branch in branches_of(models[0]) if branch != "positional"]
    jobs = [(branch, model) for branch in (*informed, "positional") for model in models]
    chains: dict[int, list[Solution]] = {}

    def finish(index: int, chain: list[Solution]) -> None:
        with growing.lock:
            chains[index] = chain
            growing.progress += share / len(jobs)
            complete = len(chains) == len(jobs)
        if not complete:
            return
        rows = [chains[index] for index in range(len(jobs))]
        dataset = assemble_diagram(models, rows, alphas, values, name, settings)
        growing.value = describe(stored_diagrams.slim(dataset))
        if every > 1:
            compute(scheduler, point, growing, 1)
        else:
            stored_diagrams.keep(point, dataset)
            growing.progress, growing.done = 1.0, True

    for index, (branch, model) in enumerate(jobs):
        job = partial(continue_one, model, alphas.tolist(), branch, settings)
        scheduler.add(job, PRIORITY, partial(finish, index), growing)


def rows_of(point: Point) -> np.ndarray:
    """The values of the other axis."""
    if point.family.is_paper:
        return stored_diagrams.OMEGAS
    slider = point.family.parameters[str(point.family.across)].slider
    assert slider is not None
    # A number that must not be zero is swept from its first step on.
    low = slider.low or slider.step
    return np.round(np.linspace(low, slider.high, ROWS), 6)


def describe(dataset: xr.Dataset) -> dict[str, Any]:
    """A stored diagram as the page draws it."""
    semantic, positional = (dataset.sel(branch=name) for name in SIDES)
    across = next(str(name) for name in dataset["alpha_c"].dims)
    minima = [is_minimum(part).values for part in (semantic, positional)]
    both = minima[0] & minima[1]
    gap = np.where(both, semantic["train_loss"].values - positional["train_loss"].values, np.nan)
    wins = np.where(both, gap < 0, minima[0])
    if stored_diagrams.REACHED in dataset:
        gap = np.where(
            np.isnan(gap), dataset[stored_diagrams.REACHED].transpose("omega", "alpha"), gap
        )
    trusted = np.where(wins, semantic["trusted"].values, positional["trusted"].values)
    value: dict[str, Any] = to_json_types(
        {
            "alpha": np.round(dataset["alpha"].values.astype(float), 6),
            "across": np.round(dataset[across].values.astype(float), 6),
            "loss_difference": gap.astype(float),
            "trusted": trusted.astype(bool),
            "reached": stored_diagrams.REACHED in dataset,
            "kind": {name: dataset["kind"].sel(branch=name).values for name in SIDES},
            "alpha_c": dataset["alpha_c"].values.astype(float),
            "alpha_l": dataset["alpha_l"].values.astype(float),
        }
    )
    return value
