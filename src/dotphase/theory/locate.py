"""Locate the fixed point of a branch on few Gaussian points.

The damped, accelerated iteration (`dotphase.numerics.fixed_point`) stays on the branch of its
initialization. Near a known neighbor, Newton steps replace it (`track`). The quadrature errors
at the located point decide how many points the solution needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dotphase.model import Model
from dotphase.numerics.fixed_point import FixedPoint, Iteration, Vector
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import MIN_QUADRATURE_LOG2
from dotphase.theory.classification import alignments, classify, matches_branch
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.newton import (
    Jacobian,
    measure_jacobian,
    newton,
    newton_or_iterate,
    single_newton_step,
)
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.quadrature_error import relative_error, required_log2_points
from dotphase.theory.settings import SolverSettings

#: log2 of the points on which a fixed point is located and its Jacobian measured.
COARSE_LOG2_POINTS = 13
#: Tolerance and noise floor of the iteration that locates a point.
COARSE_TOLERANCE, COARSE_FLOOR = 1e-3, 1e-2
#: Evaluations after which the iteration is tried with shorter steps, and then Newton steps.
PATIENCE = 14
#: Length of the shorter steps.
SHORT_STEP = 0.15
#: Length and number of the damped steps that show whether a missed branch exists.
CAREFUL_STEP, CAREFUL_MAX_STEPS = 0.2, 150
#: Factors on the weights and on V of an initialization that leaves the admissible overlaps.
RESCALINGS = tuple(product((1.0, 2.0, 4.0), (1.0, 0.2, 0.04)))[1:]
#: Relative error on few points above which the map is almost flat, as at a weak look-alike of a
#: branch. The branch is then followed from a distant alpha first.
MAX_COARSE_ERROR = 0.3
#: Alignment below which an overlap may be decaying to zero.
MAX_DECAYING_ALIGNMENT = 0.03
#: Factor of one step on the square of an overlap below which it is decaying.
DECAY = 0.95
#: Fraction of points with a second minimum below which a Jacobian from few points is precise
#: enough for the error bars.
MAX_JUMP_FRACTION = 1e-3
#: Evaluations after which the Jacobian of a neighbor is out of date.
MAX_TRACKING_EVALUATIONS = 4


@dataclass(frozen=True, eq=False)
class Located:
    """A fixed point on the first number of points of its solution.

    Attributes
    ----------
    evaluator : evaluator of the map, with warm proximal maps
    point : the fixed point, or the point at which the iteration failed
    log2_points : log2 of its number of points
    max_log2_points : log2 of the largest number of points that is worth using
    is_provisional : whether to add no points: the branch was missed, or the map is almost flat
    updated_jacobian : Jacobian with the corrections of the Newton steps, for further ones
    measured_jacobian : Jacobian without them, for the error bars; None if it is not precise enough
    """

    evaluator: PointEvaluator[StateEvolutionMap]
    point: FixedPoint
    log2_points: int
    max_log2_points: int
    updated_jacobian: Jacobian | None = None
    measured_jacobian: Jacobian | None = None
    is_provisional: bool = False


def coarse_log2_points(settings: SolverSettings) -> int:
    """log2 of the points on which a fixed point is located."""
    return min(COARSE_LOG2_POINTS, settings.initial_log2_points)


def track(
    spec: PointSpec, evaluator: PointEvaluator[StateEvolutionMap], x: Vector, jacobian: Jacobian
) -> Located | None:
    """Take Newton steps from a neighbor's fixed point; None if they fail or leave the branch."""
    settings, level = spec.settings, spec.settings.initial_log2_points
    x = single_newton_step(evaluator, x, max(level - 2, MIN_QUADRATURE_LOG2), jacobian)
    point, corrected = newton(evaluator, x, level, jacobian)
    if not point.outcome.success or not _is_on_branch(spec, evaluator.map, point):
        return None
    is_current = evaluator.n_evaluations <= MAX_TRACKING_EVALUATIONS
    return Located(
        evaluator,
        point,
        level,
        settings.max_log2_points,
        updated_jacobian=corrected,
        measured_jacobian=jacobian if is_current else None,
    )


def locate(
    spec: PointSpec,
    evaluator: PointEvaluator[StateEvolutionMap],
    initial: Overlaps,
    *,
    retry_damped: bool = True,
    stop_if_flat: bool = False,
) -> Located:
    """Iterate from an initialization to the fixed point of a branch.

    Where another branch is found, it stays provisional, on few points.

    Parameters
    ----------
    initial : Overlaps
        Overlaps in the basin of the branch.
    retry_damped : bool
        Whether to try again with short damped steps where the branch is missed. A fixed number of
        points then counts also for the branch that is found instead.
    stop_if_flat : bool
        Whether to stop at a provisional point, on few points, where the map is almost flat.
    """
    settings = spec.settings
    level, coarse = settings.initial_log2_points, coarse_log2_points(settings)
    point = _iterate_on_branch(spec, evaluator, initial, coarse, retry_damped)
    if point.outcome is Outcome.NOT_FINITE:
        return Located(evaluator, point, coarse, coarse, is_provisional=True)
    evaluator, point = _clear_decaying(evaluator, point)
    is_on_branch = _is_on_branch(spec, evaluator.map, point)
    is_provisional = not is_on_branch and (settings.log2_points is None or not retry_damped)
    level = coarse if is_provisional else level
    jacobian = measure_jacobian(evaluator, point.x, coarse)
    located = Located(
        evaluator,
        point,
        level,
        settings.max_log2_points,
        updated_jacobian=jacobian,
        is_provisional=is_provisional,
    )
    x = point.x
    if jacobian is not None and point.outcome.success and coarse < level < located.max_log2_points:
        located = _choose_points(located, jacobian, coarse, stop_if_flat)
        if located.log2_points > coarse:
            x = single_newton_step(located.evaluator, x, located.log2_points - 2, jacobian)
    point, jacobian = newton_or_iterate(evaluator, x, located.log2_points, jacobian)
    return replace(located, point=point, updated_jacobian=jacobian)


def _is_on_branch(spec: PointSpec, fixed_point_map: StateEvolutionMap, point: FixedPoint) -> bool:
    return matches_branch(spec.branch, classify(spec.model, fixed_point_map.overlaps(point.x)))


def _iterate_on_branch(
    spec: PointSpec,
    evaluator: PointEvaluator[StateEvolutionMap],
    initial: Overlaps,
    log2_points: int,
    retry_damped: bool,
) -> FixedPoint:
    """Iterate on few points, from rescaled initializations where the first one fails."""
    pack = evaluator.map.coordinates.pack
    iteration = replace(
        spec.settings.iteration_on(log2_points), tolerance=COARSE_TOLERANCE, floor=COARSE_FLOOR
    )
    x = pack(initial)
    point = iterate_patiently(evaluator, x, log2_points, iteration)
    for size, share in RESCALINGS:
        if point.outcome is not Outcome.LEFT_DOMAIN:
            break
        # The first steps left the domain: the weights are too small, or V is too large.
        x = pack(_rescale(initial, size, share))
        point = iterate_patiently(evaluator, x, log2_points, iteration)
    if (
        retry_damped
        and point.outcome is not Outcome.NOT_FINITE
        and not _is_on_branch(spec, evaluator.map, point)
    ):
        # Acceleration may have changed the branch; short damped steps do not.
        damped = replace(
            iteration, anderson_depth=0, step=CAREFUL_STEP, max_steps=CAREFUL_MAX_STEPS
        )
        damped_point = evaluator.iterate(x, log2_points, damped)
        point = damped_point if damped_point.outcome.success else point
    return point


def iterate_patiently(
    evaluator: PointEvaluator[StateEvolutionMap], x: Vector, log2_points: int, iteration: Iteration
) -> FixedPoint:
    """Iterate with shorter steps, then Newton steps, where the iteration circles a fixed point.

    Newton steps are taken only where the iteration circles the point (eigenvalues below -1, or
    complex). An eigenvalue above 1 repels: Newton steps would stay where the iteration leaves.
    """
    for step in (iteration.step, min(iteration.step, SHORT_STEP)):
        limited = replace(iteration, max_steps=PATIENCE, step=step)
        point = evaluator.iterate(x, log2_points, limited)
        if point.outcome.success:
            return point
        x = point.x
        if point.outcome is not Outcome.STEPS:
            break
    if evaluator.find_nonfinite_cause(evaluator.evaluate(x, log2_points)):
        return replace(point, outcome=Outcome.NOT_FINITE)
    if point.outcome is not Outcome.STEPS:
        return point
    if point.residual < iteration.near:
        jacobian = measure_jacobian(evaluator, x, log2_points)
        if jacobian is not None and jacobian.attracts:
            newton_point, _ = newton(evaluator, x, log2_points, jacobian)
            if newton_point.outcome.success:
                return newton_point
    return evaluator.iterate(x, log2_points, iteration)


def _choose_points(
    located: Located, jacobian: Jacobian, coarse: int, stop_if_flat: bool
) -> Located:
    """Choose the number of points from the errors on few points."""
    evaluator, settings = located.evaluator, located.evaluator.settings
    evaluated = evaluator.evaluate(located.point.x, coarse)
    measured_jacobian = jacobian if evaluated.jump_fraction < MAX_JUMP_FRACTION else None
    located = replace(located, measured_jacobian=measured_jacobian)
    if settings.log2_points is not None:
        return located
    error = relative_error(evaluated, jacobian)
    if stop_if_flat and MAX_COARSE_ERROR < error < math.inf:
        return replace(located, log2_points=coarse, max_log2_points=coarse, is_provisional=True)
    level = max(located.log2_points, required_log2_points(error, coarse, settings))
    return replace(located, log2_points=level)


def _clear_decaying(
    evaluator: PointEvaluator[StateEvolutionMap], point: FixedPoint
) -> tuple[PointEvaluator[StateEvolutionMap], FixedPoint]:
    """Set to zero the overlaps that are decaying to zero where a symmetry then fixes them there.

    They would decay slowly, and their noise keeps Newton steps from settling.
    """
    fixed_point_map, x = evaluator.map, point.x
    model: Model = fixed_point_map.model
    coordinates = fixed_point_map.coordinates
    for name, alignment in alignments(model, fixed_point_map.overlaps(x)).items():
        part = coordinates.part(name)
        size = float(x[part] @ x[part])
        is_decaying = float(x[part] @ point.image[part]) <= DECAY * size
        if size == 0 or alignment > MAX_DECAYING_ALIGNMENT or not is_decaying:
            continue
        cleared = np.where(part, 0.0, x)
        symmetric = StateEvolutionMap.from_initial(
            model, fixed_point_map.alpha, fixed_point_map.overlaps(cleared)
        )
        if symmetric.fixed[part].all():
            fixed_point_map, x = symmetric, cleared
    if fixed_point_map is evaluator.map:
        return evaluator, point
    count = evaluator.n_evaluations
    evaluator = PointEvaluator(fixed_point_map, evaluator.settings, ProxWarmStart(), count)
    return evaluator, replace(point, x=x)


def _rescale(initial: Overlaps, size: float, share: float) -> Overlaps:
    """Multiply the weights Q of an initialization by `size`, and V by `share`."""
    q, m, V, theta = (np.asarray(part) for part in initial)
    return Overlaps(q=size**2 * q, m=size * m, V=share * V, theta=size * theta)
