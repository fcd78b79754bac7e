"""One problem on its way: evaluations of its map, the iteration, and Newton steps on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.numerics.fixed_point import FixedPoint, Iteration, Vector, fixed_point
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import SMALLEST_LOG2
from dotphase.theory.driver import Steps, ask
from dotphase.theory.expectations import Answer, Query, ResponseQuery, Tracks
from dotphase.theory.fixed_point_map import Problem
from dotphase.theory.nonfinite import diagnose_averages
from dotphase.theory.settings import SolverSettings
from dotphase.theory.stability import Responses

#: Evaluations after which shorter steps, of this length, are tried on the way to a first fixed
#: point, and as many later Newton's.
PATIENT, SHORT_STEP = 14, 0.15
#: Step of the finite differences, in units of each coordinate's scale.
DIFFERENCE = 0.02


class Memory:
    """Where the proximal maps have been left, by number of points: the next query starts there."""

    def __init__(self, tracks: dict[int, Tracks] | None = None) -> None:
        self.tracks = dict(tracks or {})
        self.calls: dict[int, int] = {}

    def on(self, log2_points: int) -> Tracks:
        """On so many points, or on fewer: those are the first of them."""
        known = [level for level in self.tracks if level <= log2_points]
        return self.tracks[max(known)] if known else ()

    def for_another(self) -> Memory:
        """For a problem nearby, which starts where this one is, but with probes of its own."""
        return Memory(self.tracks)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A point at which the averages are known.

    Attributes
    ----------
    problem, x, log2_points : of what, where, on how many points
    query, answer : what was asked there, and the averages
    """

    problem: Problem[Any, Any]
    x: Vector
    log2_points: int
    query: Query[Answer]
    answer: Answer

    @cached_property
    def overlaps(self) -> Any:
        """The overlaps there."""
        return self.problem.overlaps(self.x)

    @cached_property
    def mean(self) -> Any:
        """Averages over all points."""
        return self.answer.mean

    @cached_property
    def image(self) -> Vector:
        """``F(x)``, one step of state evolution; NaN where it is not defined."""
        return self.problem.advance(self.x, self.mean)

    @property
    def images(self) -> Float[np.ndarray, "scrambles n"]:
        """``F(x)`` from each scramble alone."""
        return self.problem.advance(self.x, self.answer.averages)

    @property
    def finite(self) -> bool:
        """Whether all averages are numbers."""
        return all(np.isfinite(part).all() for part in self.mean)

    @property
    def test_error(self) -> float:
        """eps_g at x."""
        return float(self.problem.test_error(self.mean))

    @property
    def train_loss(self) -> float:
        """eps_t at x, if it is a fixed point."""
        return float(self.problem.train_loss(self.x, self.mean))

    @property
    def free_energy(self) -> float:
        """The same from a function that is stationary there."""
        return float(self.problem.free_energy(self.x, self.mean))

    def responses(self) -> Steps[Responses]:
        """Linear response of the proximal map there."""
        query = self.query
        asked = (query.evaluator, query.overlaps, query.log2_points, query.seed)
        return ask(ResponseQuery(*asked, self.answer.tracks))


class Search:
    """One problem on its way to a fixed point: asks for averages and counts how often.

    Attributes
    ----------
    count : evaluations so far
    broken : the first of them whose averages are not finite
    blamed : the function that is not finite, and where, once it has been looked for
    """

    def __init__(
        self,
        problem: Problem[Any, Any],
        settings: SolverSettings,
        memory: Memory,
        count: int = 0,
    ) -> None:
        self.problem, self.settings, self.memory = problem, settings, memory
        self.count = count
        self.broken: Evaluation | None = None
        self.blamed: str | None = None
        self._last: dict[int, Evaluation] = {}

    def evaluate(self, x: Vector, log2_points: int) -> Steps[Evaluation]:
        """Averages at the overlaps with coordinates x."""
        last, memory = self._last.get(log2_points), self.memory
        if last is not None and np.array_equal(last.x, x):
            return last
        call = memory.calls.get(log2_points, 0)
        asked = (x, log2_points, self.settings.seed, memory.on(log2_points), call)
        query = self.problem.query(*asked)
        answer = yield from ask(query)
        memory.tracks[log2_points] = answer.tracks
        memory.calls[log2_points] = call + 1
        self.count += 1
        here = Evaluation(self.problem, x, log2_points, query, answer)
        self._last[log2_points] = here
        if self.broken is None and not here.finite:
            self.broken = here
        return here

    def blame(self, here: Evaluation) -> bool:
        """Look for a function that is not finite where nothing was found, or nothing else known."""
        self.blamed = diagnose_averages(self.broken or here)
        return self.blamed is not None


def iterate(search: Search, x: Vector, log2_points: int, iteration: Iteration) -> Steps[FixedPoint]:
    """Run `fixed_point` on a problem."""
    solver = fixed_point(x, search.problem.scale, search.problem.admissible, iteration)
    x = next(solver)
    try:
        while True:
            here = yield from search.evaluate(x, log2_points)
            x = solver.send(here.image)
    except StopIteration as end:
        found: FixedPoint = end.value
        return found


def settle(search: Search, x: Vector, log2_points: int, iteration: Iteration) -> Steps[FixedPoint]:
    """`iterate`, with shorter steps and then Newton's where it goes round a fixed point for long.

    Newton's only where the Jacobian says that the iteration turns around the point (eigenvalues
    below -1, or complex): one above 1 repels, and they would hold what the iteration is leaving.
    A function that is not finite is looked for before long, and ends it.
    """
    for step in (iteration.step, min(iteration.step, SHORT_STEP)):
        some = replace(iteration, limit=PATIENT, step=step)
        point = yield from iterate(search, x, log2_points, some)
        if point.outcome.success:
            return point
        x = point.x
        if point.outcome is not Outcome.STEPS:
            break
    if search.blame((yield from search.evaluate(x, log2_points))):
        return replace(point, outcome=Outcome.NOT_FINITE)
    if point.outcome is not Outcome.STEPS:
        return point
    jacobian = None
    if point.residual < iteration.near:
        jacobian = yield from differentiate(search, x, log2_points)
    if jacobian is not None and jacobian.attracts:
        newton, _ = yield from refine(search, x, log2_points, jacobian)
        if newton.outcome.success:
            return newton
    return (yield from iterate(search, x, log2_points, iteration))


@dataclass(frozen=True)
class Jacobian:
    """Derivatives at a fixed point: ``(1 - J)^{-1}`` of the map, and of the test error."""

    free: np.ndarray
    inverse: Float[np.ndarray, "n n"]
    test: Vector

    @property
    def attracts(self) -> bool:
        """Whether no eigenvalue of J lies beyond 1, so that short enough steps lead there."""
        return bool(np.all(np.linalg.eigvals(self.inverse).real > 0))

    @classmethod
    def of(
        cls, free: np.ndarray, matrix: Float[np.ndarray, "n n"], test: Vector
    ) -> Jacobian | None:
        """From the derivatives of the map; None where they say nothing."""
        if not np.all(np.isfinite(matrix)):
            return None
        try:
            inverse = np.linalg.inv(np.eye(free.size) - matrix)
        except np.linalg.LinAlgError:
            return None
        return cls(free, inverse, test) if np.all(np.isfinite(inverse)) else None

    @property
    def matrix(self) -> Float[np.ndarray, "n n"]:
        """J itself, on the free coordinates."""
        return np.eye(self.free.size) - np.linalg.inv(self.inverse)

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


def differences(
    search: Search, x: Vector, log2_points: int, along: np.ndarray
) -> Steps[tuple[Float[np.ndarray, "n k"], Vector] | None]:
    """Derivatives of the map and of the test error in some coordinates; None outside the domain."""
    problem = search.problem
    scale = problem.scale(x)
    here = yield from search.evaluate(x, log2_points)
    columns, slopes = [], []
    for index in along:
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[index] += sign * DIFFERENCE * scale[index]
            if problem.admissible(moved):
                break
        else:
            return None
        there = yield from search.evaluate(moved, log2_points)
        step = moved[index] - x[index]
        columns.append((there.image - here.image) / step)
        slopes.append((there.test_error - here.test_error) / step)
    return np.stack(columns, axis=1), np.asarray(slopes)


def differentiate(search: Search, x: Vector, log2_points: int) -> Steps[Jacobian | None]:
    """Measure the Jacobian of the map in the free coordinates; None where it cannot be."""
    free = search.problem.free(x)
    measured = yield from differences(search, x, log2_points, free)
    if measured is None:
        return None
    columns, slopes = measured
    return Jacobian.of(free, columns[free], slopes)


def refine(
    search: Search, x: Vector, log2_points: int, jacobian: Jacobian
) -> Steps[tuple[FixedPoint, Jacobian]]:
    """Newton steps to the fixed point on other points or at another alpha, close to x.

    The Jacobian measured before is corrected on the way (Broyden). Ends without success
    where the steps make no progress.
    """
    problem = search.problem
    tolerance = search.settings.iteration_on(log2_points).tolerance
    best = FixedPoint(x, x, math.inf, 0, Outcome.STEPS)
    last: tuple[Vector, Vector] | None = None
    without_progress = 0
    while without_progress < 3 and problem.admissible(x):
        image = (yield from search.evaluate(x, log2_points)).image
        if not np.all(np.isfinite(image)) or not problem.admissible(image):
            break
        residual = image - x
        scale = problem.scale(x)
        size = float(np.max(np.abs(residual) / scale))
        if size <= tolerance:
            return FixedPoint(x, image, size, search.count, Outcome.CONVERGED), jacobian
        without_progress = 0 if size < 0.7 * best.residual else without_progress + 1
        if size < best.residual:
            best = FixedPoint(x, image, size, search.count, Outcome.STEPS)
        if last is not None:
            jacobian = jacobian.updated(x - last[0], residual - last[1], scale)
        last = (x, residual)
        step = jacobian.newton(residual)
        x = x + step / max(1.0, float(np.max(np.abs(step) / scale)) / 0.2)
    return best, jacobian


def closer(search: Search, x: Vector, log2_points: int, jacobian: Jacobian) -> Steps[Vector]:
    """One Newton step on some of the points, before `refine` uses all of them."""
    if log2_points <= max(search.memory.tracks, default=0):
        return x
    residual = (yield from search.evaluate(x, log2_points)).image - x
    moved = x + jacobian.newton(residual)
    small = np.max(np.abs(moved - x) / search.problem.scale(x)) < 0.2
    return moved if small and search.problem.admissible(moved) else x


def refine_or_iterate(
    search: Search, x: Vector, log2_points: int, jacobian: Jacobian | None
) -> Steps[tuple[FixedPoint, Jacobian | None]]:
    """`refine`, again with a better Jacobian, and the general iteration where that fails too.

    Jumps make noise in a Jacobian that was measured on few points; to measure it on a quarter of
    these costs as much as one more step.
    """
    for again in (False, True):
        if again:
            jacobian = yield from differentiate(search, x, max(log2_points - 2, SMALLEST_LOG2))
        if jacobian is not None:
            point, jacobian = yield from refine(search, x, log2_points, jacobian)
            if point.outcome.success:
                return point, jacobian
            x = point.x
    iteration = search.settings.iteration_on(log2_points)
    point = yield from iterate(search, x, log2_points, iteration)
    return point, jacobian
