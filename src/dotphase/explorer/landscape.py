"""The effective landscape around the branches of a point, row by row."""

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
    job.value = {"m": m.tolist(), "theta": theta.tolist(), "loss": [None] * SIZE, "minima": []}
    try:
        rows = dict(enumerate(landscape_rows(model, point.alpha, m, theta)))
    except InvalidInput as error:
        job.fail(str(error))
        return

    def progress(index: int, row: np.ndarray) -> None:
        with job.lock:
            job.value["loss"][index] = row[:, 0]
            job.progress += 1 / SIZE

    def finish(solved: dict[int, np.ndarray]) -> None:
        surface = assemble(model, point.alpha, m, theta, list(solved.values()))
        minima = [list(cell) for cell in surface.minima]
        with job.lock:
            job.value |= {"minima": minima, "trusted": float(np.mean(surface.trusted))}
            job.progress, job.done = 1.0, True

    scheduler.add_all(rows, PRIORITY, finish, job, progress)
