"""One problem on its way: state evolution as a map on vectors, and Newton steps on it."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dotphase._numerics.fixed_point import FixedPoint, Iteration, fixed_point
from dotphase._numerics.outcome import Outcome
from dotphase._numerics.prox import Track
from dotphase.model import Model
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.evaluate import Answer, Evaluator, Query
from dotphase.theory.evolution import Averages, conjugates, next_overlaps, test_error
from dotphase.theory.overlaps import admissible
from dotphase.theory.settings import Settings

Vector = Float[np.ndarray, " n"]

#: Step of the finite differences, in units of each coordinate's scale.
DIFFERENCE = 0.02


class Lane:
    """One problem on its way: turns vectors into queries and answers into vectors."""

    def __init__(self, model: Model, alpha: float, settings: Settings) -> None:
        self.model = model
        self.evaluator = Evaluator(model)
        self.alpha = alpha
        self.settings = settings
        self.coordinates = Coordinates.of(model)
        self.held: np.ndarray = np.zeros(0, bool)
        self.count = 0
        self._tracks: dict[int, tuple[Track, ...]] = {}
        self._calls: dict[int, int] = {}
        self.asked: tuple[Vector, int] | None = None
        self.query: Query | None = None
        self.answer: Answer | None = None

    def at(self, alpha: float) -> Lane:
        """The same problem at another alpha, its proximal maps started where these are."""
        lane = Lane(self.model, alpha, self.settings)
        lane._tracks = dict(self._tracks)
        return lane

    def ask(self, x: Vector, log2_points: int) -> Generator[Query, Answer, Answer]:
        """Averages at the overlaps with coordinates x."""
        if self.answer is not None and self.asked is not None:
            last, points = self.asked
            if points == log2_points and np.array_equal(last, x):
                return self.answer
        call = self._calls.get(log2_points, 0)
        query = Query(
            self.evaluator,
            self.coordinates.unpack(x),
            log2_points,
            self.settings.seed,
            self._tracks.get(log2_points),
            call,
        )
        answer = yield query
        self._tracks[log2_points] = answer.tracks
        self._calls[log2_points] = call + 1
        self.count += 1
        self.asked, self.query, self.answer = (x, log2_points), query, answer
        return answer

    def map_value(self, x: Vector, log2_points: int) -> Generator[Query, Answer, Vector]:
        """One step of state evolution, ``F(x)``; NaN where it is not defined."""
        answer = yield from self.ask(x, log2_points)
        return self.image(x, answer)

    def image(self, x: Vector, answer: Answer) -> Vector:
        """``F(x)`` from the averages at x."""
        return self._advance(x, answer.mean)

    def images(self, x: Vector, answer: Answer) -> Float[np.ndarray, "scrambles n"]:
        """``F(x)`` from each scramble alone."""
        return self._advance(x, answer.averages)

    def _advance(self, x: Vector, averages: Averages) -> np.ndarray:
        overlaps = self.coordinates.unpack(x)
        try:
            hats = conjugates(self.model, self.alpha, overlaps, averages)
            image = self.coordinates.pack(next_overlaps(self.model, hats))
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)
        image[..., self.held] = 0.0
        return image

    def admissible(self, x: Vector) -> bool:
        """Whether x describes Gaussian fields."""
        return admissible(self.model, self.coordinates.unpack(x))


def iterate(
    lane: Lane, x: Vector, log2_points: int, iteration: Iteration
) -> Generator[Query, Answer, FixedPoint]:
    """Run `fixed_point` on a lane."""
    solver = fixed_point(x, lane.coordinates.scale, lane.admissible, iteration)
    x = next(solver)
    try:
        while True:
            value = yield from lane.map_value(x, log2_points)
            x = solver.send(value)
    except StopIteration as end:
        found: FixedPoint = end.value
        return found


@dataclass(frozen=True)
class Jacobian:
    """Derivatives at a fixed point: ``(1 - J)^{-1}`` of the map, and of the test error."""

    free: np.ndarray
    inverse: Float[np.ndarray, "n n"]
    test: Vector

    def newton(self, residual: np.ndarray) -> np.ndarray:
        """``(1 - J)^{-1} residual`` on the free coordinates; rows are separate residuals."""
        step = np.zeros_like(residual)
        step[..., self.free] = residual[..., self.free] @ self.inverse.T
        return step

    def updated(self, step: Vector, change: Vector, scale: Vector) -> Jacobian:
        """Broyden's correction from one step and the change of the residual it made."""
        size = scale[self.free]
        inverse = self.inverse * size[None, :] / size[:, None]
        s, y = step[self.free] / size, -change[self.free] / size
        image = inverse @ y
        weight = s @ image
        if abs(weight) < 1e-3 * (s @ s):
            return self
        inverse = inverse + np.outer(s - image, s @ inverse) / weight
        return replace(self, inverse=inverse * size[:, None] / size[None, :])


def differentiate(
    lane: Lane, x: Vector, log2_points: int
) -> Generator[Query, Answer, Jacobian | None]:
    """Measure the Jacobian of the map; None where it cannot be."""
    free = np.flatnonzero(~lane.held)
    scale = lane.coordinates.scale(x)
    answer = yield from lane.ask(x, log2_points)
    here, test_here = lane.image(x, answer), float(test_error(lane.model, answer.mean))
    columns, slopes = [], []
    for index in free:
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[index] += sign * DIFFERENCE * scale[index]
            if lane.admissible(moved):
                break
        else:
            return None
        answer = yield from lane.ask(moved, log2_points)
        step = moved[index] - x[index]
        columns.append((lane.image(moved, answer) - here)[free] / step)
        slopes.append((float(test_error(lane.model, answer.mean)) - test_here) / step)
    jacobian = np.stack(columns, axis=1)
    if not np.all(np.isfinite(jacobian)):
        return None
    try:
        inverse = np.linalg.inv(np.eye(free.size) - jacobian)
    except np.linalg.LinAlgError:
        return None
    return Jacobian(free, inverse, np.asarray(slopes))


def refine(
    lane: Lane, x: Vector, log2_points: int, jacobian: Jacobian
) -> Generator[Query, Answer, tuple[FixedPoint, Jacobian]]:
    """Newton steps to the fixed point on other points or at another alpha, close to x.

    The Jacobian measured before is corrected on the way (Broyden). Ends without success
    where the steps make no progress.
    """
    tolerance = lane.settings.iteration_on(log2_points).tolerance
    best = FixedPoint(x, x, math.inf, 0, Outcome.STEPS)
    last: tuple[Vector, Vector] | None = None
    without_progress = 0
    while without_progress < 3 and lane.admissible(x):
        image = yield from lane.map_value(x, log2_points)
        if not np.all(np.isfinite(image)) or not lane.admissible(image):
            break
        residual = image - x
        scale = lane.coordinates.scale(x)
        size = float(np.max(np.abs(residual) / scale))
        if size <= tolerance:
            return FixedPoint(x, image, size, lane.count, Outcome.CONVERGED), jacobian
        without_progress = 0 if size < 0.7 * best.residual else without_progress + 1
        if size < best.residual:
            best = FixedPoint(x, image, size, lane.count, Outcome.STEPS)
        if last is not None:
            jacobian = jacobian.updated(x - last[0], residual - last[1], scale)
        last = (x, residual)
        step = jacobian.newton(residual)
        x = x + step / max(1.0, float(np.max(np.abs(step) / scale)) / 0.2)
    return best, jacobian


def refine_or_iterate(
    lane: Lane, x: Vector, log2_points: int, jacobian: Jacobian | None
) -> Generator[Query, Answer, tuple[FixedPoint, Jacobian | None]]:
    """`refine`, and the general iteration from its best point where that fails."""
    if jacobian is not None:
        point, jacobian = yield from refine(lane, x, log2_points, jacobian)
        if point.outcome.success:
            return point, jacobian
        x = point.x
    point = yield from iterate(lane, x, log2_points, lane.settings.iteration_on(log2_points))
    return point, jacobian
