"""The effective landscape around the two branches of a point, row by row."""

from __future__ import annotations

from functools import partial

import numpy as np

from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import Growing
from dotphase.model import Model
from dotphase.theory.landscape import assemble, landscape_rows

#: Cells in each direction.
SIZE = 21
#: Largest |m|, and largest theta/sigma^2, of the picture.
LARGEST_M, LARGEST_T = 0.6, 1.0
#: After the curve.
PRIORITY = 2


def axes(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The grid of m and theta for a model."""
    m = np.round(np.linspace(0.0, LARGEST_M, SIZE), 6)
    return m, np.round(np.linspace(0.0, LARGEST_T * float(model.rho[0]), SIZE), 6)


def begin(scheduler: Scheduler, point: Point, growing: Growing) -> None:
    """Compute the landscape at a point, if it has one; rows not computed yet are None."""
    model = point.model()
    m, theta = axes(model)
    rows: dict[int, np.ndarray] = {}
    shape = {"m": m.tolist(), "theta": theta.tolist()}
    growing.value = {**shape, "loss": [None] * SIZE, "minima": [], "trusted": None}

    def finish(index: int, row: np.ndarray) -> None:
        with growing.lock:
            rows[index] = row
            loss = [rows[i][:, 0] if i in rows else None for i in range(SIZE)]
            minima: list[list[float]] = []
            trusted = None
            if len(rows) == SIZE:
                whole = assemble(model, point.alpha, m, theta, [rows[i] for i in range(SIZE)])
                minima = [list(cell) for cell in whole.minima]
                trusted = float(np.mean(whole.trusted))
                growing.done = True
            growing.value = {**shape, "loss": loss, "minima": minima, "trusted": trusted}
            growing.progress = len(rows) / SIZE

    try:
        jobs = landscape_rows(model, point.alpha, m, theta)
    except InvalidInput as error:
        growing.give_up(str(error))
        return
    for index, job in enumerate(jobs):
        scheduler.add(job, PRIORITY, partial(finish, index), growing)
