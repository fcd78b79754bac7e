"""Newton steps to a fixed point, with a Jacobian measured by finite differences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.numerics.fixed_point import FixedPoint, Iteration, Vector
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import MIN_QUADRATURE_LOG2
from dotphase.theory.point_evaluator import EvaluatedPoint, PointEvaluator

#: Step of the finite differences, in units of each coordinate's scale.
DIFFERENCE_STEP = 0.02
#: Longest Newton step, in units of the scale.
MAX_STEP = 0.2
#: Newton steps without progress after which `newton` gives up, and the reduction of the residual
#: that counts as progress.
MAX_FAILURES, PROGRESS = 3, 0.7
#: Fraction of points with a second minimum above which a residual below this share of the noise
#: floor is that of jumping points.
MANY_JUMPS, NOISE_SHARE = 1e-3, 0.25


@dataclass(frozen=True)
class Jacobian:
    """Derivatives at a fixed point, in the free coordinates.

    Attributes
    ----------
    free : indices of the free coordinates
    inverse : ``(1 - J)^{-1}``, J being the Jacobian of the map
    test_gradient : derivatives of the test error
    """

    free: np.ndarray
    inverse: Float[np.ndarray, "n n"]
    test_gradient: Vector

    @classmethod
    def from_matrix(
        cls, free: np.ndarray, matrix: Float[np.ndarray, "n n"], test_gradient: Vector
    ) -> Jacobian | None:
        """From the derivatives of the map; None where ``1 - J`` has no finite inverse."""
        if not np.all(np.isfinite(matrix)):
            return None
        try:
            inverse = np.linalg.inv(np.eye(free.size) - matrix)
        except np.linalg.LinAlgError:
            return None
        return cls(free, inverse, test_gradient) if np.all(np.isfinite(inverse)) else None

    @property
    def matrix(self) -> Float[np.ndarray, "n n"]:
        """The Jacobian J of the map."""
        return np.eye(self.free.size) - np.linalg.inv(self.inverse)

    @property
    def attracts(self) -> bool:
        """True if no eigenvalue of J exceeds 1, so that short enough damped steps converge."""
        return bool(np.all(np.linalg.eigvals(self.inverse).real > 0))

    def newton_step(self, residual: np.ndarray) -> np.ndarray:
        """``(1 - J)^{-1} residual``; rows are separate residuals."""
        step = np.zeros_like(residual)
        step[..., self.free] = residual[..., self.free] @ self.inverse.T
        return step

    def broyden_update(self, step: Vector, change: Vector, scale: Vector) -> Jacobian:
        """Correct the Jacobian with one step and the change of the residual along it."""
        size = scale[self.free]
        inverse = self.inverse * size[None, :] / size[:, None]
        s, y = step[self.free] / size, -change[self.free] / size
        image = inverse @ y
        weight = s @ image
        if abs(weight) < 1e-3 * (s @ s):
            return self
        inverse = inverse + np.outer(s - image, s @ inverse) / weight
        return replace(self, inverse=inverse * size[:, None] / size[None, :])


def finite_differences(
    evaluator: PointEvaluator[Any], x: Vector, log2_points: int, coordinates: np.ndarray
) -> tuple[Float[np.ndarray, "n k"], Vector] | None:
    """Derivatives of the map and of the test error by some coordinates; None outside the domain."""
    fixed_point_map = evaluator.map
    scale = fixed_point_map.scale(x)
    center = evaluator.evaluate(x, log2_points)
    columns, gradient = [], []
    for index in coordinates:
        for sign in (1.0, -1.0):
            shifted = x.copy()
            shifted[index] += sign * DIFFERENCE_STEP * scale[index]
            if fixed_point_map.admissible(shifted):
                break
        else:
            return None
        point = evaluator.evaluate(shifted, log2_points)
        step = shifted[index] - x[index]
        columns.append((point.image - center.image) / step)
        gradient.append((point.test_error - center.test_error) / step)
    return np.stack(columns, axis=1), np.asarray(gradient)


def measure_jacobian(
    evaluator: PointEvaluator[Any], x: Vector, log2_points: int
) -> Jacobian | None:
    """Measure the Jacobian in the free coordinates; None outside the domain."""
    free = evaluator.map.free(x)
    differences = finite_differences(evaluator, x, log2_points, free)
    if differences is None:
        return None
    columns, test_gradient = differences
    return Jacobian.from_matrix(free, columns[free], test_gradient)


def newton(
    evaluator: PointEvaluator[Any], x: Vector, log2_points: int, jacobian: Jacobian
) -> tuple[FixedPoint, Jacobian]:
    """Take Newton steps to a fixed point close to x.

    The Jacobian is corrected at each step (Broyden). Where the residual does not fall, all points
    are searched for second minima once: those that turn up by chance move the map. The outcome is
    not a success where the steps make no progress.
    """
    fixed_point_map = evaluator.map
    iteration = evaluator.settings.iteration_on(log2_points)
    best = FixedPoint(x, x, math.inf, 0, Outcome.STEPS)
    previous: tuple[Vector, Vector] | None = None
    failures, searched = 0, False
    while failures < MAX_FAILURES and fixed_point_map.admissible(x):
        evaluated = evaluator.evaluate(x, log2_points)
        image = evaluated.image
        if not np.all(np.isfinite(image)) or not fixed_point_map.admissible(image):
            break
        residual = image - x
        scale = fixed_point_map.scale(x)
        size = float(np.max(np.abs(residual) / scale))
        count = evaluator.n_evaluations
        if size <= max(iteration.tolerance, _share_of_error(evaluated, scale, iteration)):
            return FixedPoint(x, image, size, count, Outcome.CONVERGED), jacobian
        if size <= NOISE_SHARE * iteration.floor and evaluated.jump_fraction > MANY_JUMPS:
            return FixedPoint(x, image, size, count, Outcome.NOISE_FLOOR), jacobian
        if size >= PROGRESS * best.residual and not searched and evaluated.jump_fraction > 0:
            evaluator.warm_start.search_all(log2_points)
            best, previous, searched = replace(best, residual=math.inf), None, True
            continue
        failures = 0 if size < PROGRESS * best.residual else failures + 1
        if size < best.residual:
            best = FixedPoint(x, image, size, count, Outcome.STEPS)
        if previous is not None:
            jacobian = jacobian.broyden_update(x - previous[0], residual - previous[1], scale)
        previous = (x, residual)
        step = jacobian.newton_step(residual)
        x = x + limited_step(step, scale)
    return best, jacobian


def _share_of_error(evaluated: EvaluatedPoint, scale: Vector, iteration: Iteration) -> float:
    """The part of the quadrature error of the map that a residual may have."""
    if not iteration.quadrature_share:
        return 0.0
    images = evaluated.images / scale
    errors = np.std(images, axis=0, ddof=1) / math.sqrt(len(images))
    return iteration.quadrature_share * float(np.max(errors))


def limited_step(step: Vector, scale: Vector) -> Vector:
    """Shorten a step to `MAX_STEP` in its largest coordinate."""
    return np.asarray(step / max(1.0, float(np.max(np.abs(step) / scale)) / MAX_STEP))


def single_newton_step(
    evaluator: PointEvaluator[Any], x: Vector, log2_points: int, jacobian: Jacobian
) -> Vector:
    """Take one Newton step on a part of the points, before `newton` uses all of them."""
    if log2_points <= evaluator.warm_start.max_log2_points:
        return x
    residual = evaluator.evaluate(x, log2_points).image - x
    stepped = x + jacobian.newton_step(residual)
    is_short = np.max(np.abs(stepped - x) / evaluator.map.scale(x)) < MAX_STEP
    return stepped if is_short and evaluator.map.admissible(stepped) else x


def newton_or_iterate(
    evaluator: PointEvaluator[Any], x: Vector, log2_points: int, jacobian: Jacobian | None
) -> tuple[FixedPoint, Jacobian | None]:
    """Try Newton steps, then Newton steps with a new Jacobian, then the damped iteration.

    Jumps of the proximal map make a Jacobian from few points noisy. To measure it on a quarter of
    the points costs as much as one more step.
    """
    for measure_again in (False, True):
        if measure_again:
            level = max(log2_points - 2, MIN_QUADRATURE_LOG2)
            jacobian = measure_jacobian(evaluator, x, level)
        if jacobian is not None:
            point, jacobian = newton(evaluator, x, log2_points, jacobian)
            if point.outcome.success:
                return point, jacobian
            x = point.x
    iteration = evaluator.settings.iteration_on(log2_points)
    return evaluator.iterate(x, log2_points, iteration), jacobian
