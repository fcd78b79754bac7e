"""Pseudo-arclength continuation of a branch around a fold (spinodal) in alpha.

At a fold two fixed points merge and ``1 - J`` is singular, so alpha cannot parametrize the branch.
The arclength s can. With free coordinates z in units of their scale and ``tau = log alpha``, each
step solves the bordered system

    F(z; tau) - z = 0,      t . (z - z_0, tau - tau_0) = ds,

for a tangent t of unit length at the last point (z_0, tau_0). The averages over the Gaussian points
depend on the overlaps alone, so that a change of tau costs no evaluation. The fold is the point
with ``dtau/ds = 0``. For scramble k alone it would be at

    tau + w . (F - F_k) / (w . dF/dtau),      w^T (1 - J) = 0,

and the spread of these is its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dotphase.numerics.crossings import straight_root
from dotphase.numerics.fixed_point import Vector
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.newton import Jacobian, measure_jacobian
from dotphase.theory.point_evaluator import EvaluatedPoint, PointEvaluator
from dotphase.theory.quadrature_error import standard_error

#: First, smallest and largest step of the arclength, in units of the scale of the coordinates.
FIRST_STEP, MIN_STEP, MAX_STEP = 0.1, 0.003, 0.4
#: Largest number of steps on the way to a fold.
MAX_STEPS = 60
#: Newton steps of one corrector; fewer than `FAST` make the next step longer.
CORRECTOR_STEPS, FAST = 8, 4
#: |dtau/ds| at which a point counts as the fold, and steps towards it.
FOLD_TOLERANCE, FOLD_STEPS = 0.02, 4
#: Step of tau for the derivative of the map, which is smooth algebra.
TAU_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """A fixed point on the branch as a curve.

    Attributes
    ----------
    evaluated : the fixed point, with its averages
    tau : log of alpha
    tangent : unit tangent (dz/ds, dtau/ds)
    matrix : ``(F_z - 1, F_tau)`` in scaled coordinates, without the border
    """

    evaluated: EvaluatedPoint
    tau: float
    tangent: Vector
    matrix: Float[np.ndarray, "n n+1"]

    @property
    def alpha(self) -> float:
        """Sample complexity."""
        return math.exp(self.tau)


@dataclass(frozen=True)
class Fold:
    """A fold of a branch in alpha, and its quadrature standard error."""

    alpha: float
    stderr: float


class ArclengthContinuation:
    """A branch followed in its arclength from a solved point.

    Parameters
    ----------
    evaluator : PointEvaluator
        Evaluator of the map at the first point.
    x, jacobian : array, Jacobian
        The first fixed point, and the derivatives there.
    log2_points : int
        log2 of the number of Gaussian points.
    direction : float
        Sign of the first change of alpha.
    """

    def __init__(
        self,
        evaluator: PointEvaluator[StateEvolutionMap],
        x: Vector,
        jacobian: Jacobian,
        log2_points: int,
        direction: float,
    ) -> None:
        self._evaluator, self._log2_points = evaluator, log2_points
        self._free = jacobian.free
        self._scale = evaluator.map.scale(x)[self._free]
        self._iteration = evaluator.settings.iteration_on(log2_points)
        evaluated = evaluator.evaluate(x, log2_points)
        tau = math.log(evaluator.map.alpha)
        matrix = self._matrix(evaluated, tau, jacobian)
        border = np.append(np.zeros(self._free.size), math.copysign(1.0, direction))
        self.first = CurvePoint(evaluated, tau, _tangent(matrix, border), matrix)

    def step(self, origin: CurvePoint, length: float) -> tuple[CurvePoint, int] | None:
        """Solve at a distance along the curve; None if the corrector fails.

        Returns the point and the number of Newton steps.
        """
        matrix, predicted = origin.matrix, length * origin.tangent
        z0 = origin.evaluated.x[self._free] / self._scale
        change, previous = predicted, None
        for count in range(1, CORRECTOR_STEPS + 1):
            x = origin.evaluated.x.copy()
            x[self._free] = (z0 + change[:-1]) * self._scale
            tau = origin.tau + change[-1]
            if not self._evaluator.map.admissible(x):
                return None
            evaluated = self._evaluator.evaluate(x, self._log2_points)
            residual = self._residual(evaluated, tau)
            if not np.all(np.isfinite(residual)):
                return None
            if previous is not None:
                matrix = _broyden(matrix, change - previous[0], residual - previous[1])
            if np.max(np.abs(residual)) <= self._accepted(count):
                matrix[:, -1] = self._tau_derivative(evaluated, tau)
                tangent = _tangent(matrix, origin.tangent)
                return CurvePoint(evaluated, tau, tangent, matrix), count
            previous = change, residual
            bordered = np.vstack([matrix, origin.tangent])
            try:
                change = change - np.linalg.solve(bordered, np.append(residual, 0.0))
            except np.linalg.LinAlgError:
                return None
            if np.linalg.norm(change) > 3 * abs(length):
                return None
        return None

    def _accepted(self, count: int) -> float:
        """Residual that is accepted: in the end that of the noise of jumping points."""
        return self._iteration.tolerance if count < CORRECTOR_STEPS // 2 else self._iteration.floor

    def measured(self, point: CurvePoint) -> CurvePoint:
        """The same point with a newly measured Jacobian."""
        evaluator = self._at_alpha(point.alpha)
        jacobian = measure_jacobian(evaluator, point.evaluated.x, self._log2_points)
        if jacobian is None:
            return point
        matrix = self._matrix(point.evaluated, point.tau, jacobian)
        return replace(point, matrix=matrix, tangent=_tangent(matrix, point.tangent))

    def fold_stderr(self, fold: CurvePoint) -> float:
        """Quadrature standard error of log alpha at a fold."""
        null = np.linalg.svd(fold.matrix[:, :-1])[0][:, -1]
        fixed_point_map = self._at_alpha(fold.alpha).map
        x, expectations = fold.evaluated.x, fold.evaluated.expectations
        images = fixed_point_map.advance(x, expectations.per_scramble)
        spread = (images - fixed_point_map.advance(x, expectations.mean))[:, self._free]
        shifts = (spread / self._scale) @ null / (fold.matrix[:, -1] @ null)
        return standard_error(shifts)

    def _at_alpha(self, alpha: float) -> PointEvaluator[StateEvolutionMap]:
        evaluator = self._evaluator
        moved = replace(evaluator.map, alpha=alpha)
        return PointEvaluator(moved, evaluator.settings, evaluator.warm_start)

    def _residual(self, evaluated: EvaluatedPoint, tau: float) -> Vector:
        image = replace(self._evaluator.map, alpha=math.exp(tau)).advance(
            evaluated.x, evaluated.mean
        )
        return (image - evaluated.x)[self._free] / self._scale

    def _tau_derivative(self, evaluated: EvaluatedPoint, tau: float) -> Vector:
        above, below = (self._residual(evaluated, tau + sign * TAU_STEP) for sign in (1, -1))
        return (above - below) / (2 * TAU_STEP)

    def _matrix(
        self, evaluated: EvaluatedPoint, tau: float, jacobian: Jacobian
    ) -> Float[np.ndarray, "n n+1"]:
        scaled = jacobian.matrix * self._scale / self._scale[:, None]
        minus_identity = scaled - np.eye(self._free.size)
        return np.column_stack([minus_identity, self._tau_derivative(evaluated, tau)])


def find_fold(curve: ArclengthContinuation, max_tau_distance: float) -> Fold | None:
    """Follow a curve to its first fold; None if it is lost or has none within a range of tau."""
    origin = curve.first
    point, length = origin, FIRST_STEP
    for _ in range(MAX_STEPS):
        step = curve.step(point, length)
        if step is None:
            length /= 2
            if length < MIN_STEP:
                return None
            continue
        advanced, count = step
        if advanced.tangent[-1] * origin.tangent[-1] <= 0:
            return _refine_fold(curve, point, advanced, length)
        point = advanced
        if abs(point.tau - origin.tau) > max_tau_distance:
            return None
        point = curve.measured(point)
        if count <= FAST:
            length = min(1.5 * length, MAX_STEP)
    return None


def _refine_fold(
    curve: ArclengthContinuation, before: CurvePoint, after: CurvePoint, length: float
) -> Fold:
    """Find the point between two others where dtau/ds vanishes, and its alpha."""
    before, fold = curve.measured(before), curve.measured(after)
    curvature = (fold.tangent[-1] - before.tangent[-1]) / length
    for _ in range(FOLD_STEPS):
        if abs(fold.tangent[-1]) < FOLD_TOLERANCE:
            break
        length = straight_root(0.0, before.tangent[-1], length, fold.tangent[-1])
        step = curve.step(before, length)
        if step is None:
            break
        fold = curve.measured(step[0])
        curvature = (fold.tangent[-1] - before.tangent[-1]) / length
    # tau is a parabola in s near the fold.
    alpha = math.exp(fold.tau - fold.tangent[-1] ** 2 / (2 * curvature))
    return Fold(alpha, alpha * curve.fold_stderr(fold))


def _tangent(matrix: Float[np.ndarray, "n n+1"], previous: Vector) -> Vector:
    """Unit null vector of the matrix, with a positive product with the previous tangent."""
    bordered = np.vstack([matrix, previous])
    direction = np.linalg.solve(bordered, np.append(np.zeros(len(matrix)), 1.0))
    return np.asarray(direction / np.linalg.norm(direction))


def _broyden(matrix: Float[np.ndarray, "n n+1"], step: Vector, change: Vector) -> np.ndarray:
    """Correct the matrix with one step and the change of the residual along it."""
    return np.asarray(matrix + np.outer(change - matrix @ step, step) / (step @ step))
