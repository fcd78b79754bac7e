"""Follow the fixed point of a family of maps in one parameter.

Branches in alpha have rules of their own (`dotphase.theory.continuation`). Other parameters, such
as a prescribed overlap or the Parisi parameter, need only Newton steps from the nearest point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from dotphase.numerics.fixed_point import FixedPoint, Iteration, Vector
from dotphase.theory.newton import Jacobian, measure_jacobian, newton_or_iterate
from dotphase.theory.point_evaluator import EvaluatedPoint, P, PointEvaluator, ProxWarmStart
from dotphase.theory.settings import SolverSettings

#: Number of evaluations after which the Jacobian of a neighbor is out of date.
PATIENCE = 5


@dataclass(frozen=True, eq=False)
class ContinuedPoint:
    """A fixed point at one value of the parameter, or the point at which the search failed."""

    parameter: float
    fixed_point: FixedPoint
    evaluated: EvaluatedPoint
    jacobian: Jacobian | None


class ParameterContinuation(Generic[P]):
    """Fixed points of a family of maps, each solved from the nearest one.

    Parameters
    ----------
    family : callable
        The map at a value of the parameter.
    settings : SolverSettings
        Tolerances and seed.
    log2_points, coarse_log2_points : int
        log2 of the Gaussian points of the fixed points, and of those for the first point and for
        Jacobians.

    Attributes
    ----------
    points : fixed points so far
    n_evaluations : evaluations so far
    """

    def __init__(
        self,
        family: Callable[[float], P],
        settings: SolverSettings,
        log2_points: int,
        coarse_log2_points: int,
    ) -> None:
        self._family, self._settings = family, settings
        self._log2_points, self._coarse = log2_points, min(coarse_log2_points, log2_points)
        self._warm_start = ProxWarmStart()
        self.points: list[ContinuedPoint] = []
        self.n_evaluations = 0

    def solve_at(self, parameter: float, initial: Vector) -> ContinuedPoint:
        """Solve at a value of the parameter; from `initial` where there is no point yet.

        The point is kept if it is a fixed point with a known Jacobian.
        """
        evaluator = PointEvaluator(self._family(parameter), self._settings, self._warm_start)
        if self.points:
            nearest = min(self.points, key=lambda point: abs(point.parameter - parameter))
            x, jacobian = nearest.evaluated.x, nearest.jacobian
        else:
            iteration = self._settings.iteration_on(self._coarse)
            x = evaluator.iterate(initial, self._coarse, iteration).x
            jacobian = measure_jacobian(evaluator, x, self._coarse)
        fixed_point, jacobian = newton_or_iterate(evaluator, x, self._log2_points, jacobian)
        if jacobian is None or evaluator.n_evaluations > PATIENCE:
            jacobian = measure_jacobian(evaluator, fixed_point.x, self._coarse)
        return self._keep(parameter, evaluator, fixed_point, jacobian)

    def iterate_at(self, parameter: float, initial: Vector, iteration: Iteration) -> ContinuedPoint:
        """Solve at a value of the parameter with the damped iteration from an initialization."""
        evaluator = PointEvaluator(self._family(parameter), self._settings, self._warm_start)
        fixed_point = evaluator.iterate(initial, self._log2_points, iteration)
        jacobian = None
        if fixed_point.outcome.success:
            jacobian = measure_jacobian(evaluator, fixed_point.x, self._coarse)
        return self._keep(parameter, evaluator, fixed_point, jacobian)

    def _keep(
        self,
        parameter: float,
        evaluator: PointEvaluator[Any],
        fixed_point: FixedPoint,
        jacobian: Jacobian | None,
    ) -> ContinuedPoint:
        evaluated = evaluator.evaluate(fixed_point.x, self._log2_points)
        self.n_evaluations += evaluator.n_evaluations
        point = ContinuedPoint(parameter, fixed_point, evaluated, jacobian)
        if fixed_point.outcome.success and jacobian is not None:
            self.points.append(point)
        return point
