"""The effective landscape around the branches of a point, row by row."""

from __future__ import annotations

from functools import partial

import numpy as np

from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import SharedJob
from dotphase.model import Model
from dotphase.theory.landscape import assemble, landscape_rows

#: Number of cells in each direction.
SIZE = 21
#: Largest |m| of the picture.
MAX_M = 0.6
#: Largest theta/sigma^2 of the picture.
MAX_THETA = 1.0
#: Landscapes come after the curve.
PRIORITY = 2


def axes(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The grid of m and theta for a model."""
    m = np.round(np.linspace(0.0, MAX_M, SIZE), 6)
    return m, np.round(np.linspace(0.0, MAX_THETA * float(model.rho[0]), SIZE), 6)


def start_landscape(scheduler: Scheduler, point: Point, job: SharedJob) -> None:
    """Compute the landscape at a point, if it has one; missing rows are None."""
    model = point.model()
    m, theta = axes(model)
    rows: dict[int, np.ndarray] = {}
    grid = {"m": m.tolist(), "theta": theta.tolist()}
    job.value = {**grid, "loss": [None] * SIZE, "minima": [], "trusted": None}

    def finish(index: int, row: np.ndarray) -> None:
        with job.lock:
            rows[index] = row
            loss = [rows[i][:, 0] if i in rows else None for i in range(SIZE)]
            minima: list[list[float]] = []
            trusted = None
            if len(rows) == SIZE:
                surface = assemble(model, point.alpha, m, theta, [rows[i] for i in range(SIZE)])
                minima = [list(cell) for cell in surface.minima]
                trusted = float(np.mean(surface.trusted))
                job.done = True
            job.value = {**grid, "loss": loss, "minima": minima, "trusted": trusted}
            job.progress = len(rows) / SIZE

    try:
        tasks = landscape_rows(model, point.alpha, m, theta)
    except InvalidInput as error:
        job.fail(str(error))
        return
    for index, task in enumerate(tasks):
        scheduler.add(task, PRIORITY, partial(finish, index), job)
