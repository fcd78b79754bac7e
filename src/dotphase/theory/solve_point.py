"""Solve for one fixed point: locate the branch, refine to the tolerance, measure the stability.

1. `locate` finds the fixed point on few Gaussian points.
2. `refine` moves it to more points with Newton steps until the standard errors meet the tolerance.
   They follow from the spread of independent scrambles and the Jacobian of the map.
3. `measure_stability` decides whether it is a minimum of the training loss or a saddle.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dotphase.model.nonfinite import unknown_cause
from dotphase.numerics.fixed_point import FixedPoint, Vector
from dotphase.numerics.outcome import Outcome
from dotphase.theory.classification import classify
from dotphase.theory.driver import OutOfTime, time_limit
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.locate import MAX_JUMP_FRACTION, Located, locate, track
from dotphase.theory.model_error import (
    LAWS,
    explained_variance,
    model_errors,
    relative_errors,
    stiffness_lost,
)
from dotphase.theory.multipliers import full_jacobian, measure_multipliers
from dotphase.theory.newton import Jacobian, limited_step, measure_jacobian, newton_or_iterate
from dotphase.theory.nonfinite import diagnose_averages
from dotphase.theory.overlaps import Overlaps, is_zero
from dotphase.theory.point_evaluator import EvaluatedPoint, PointEvaluator, ProxWarmStart
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.quadrature_error import (
    largest_relative_error,
    relative_error,
    relative_errors_of,
    required_log2_points,
    scramble_values,
    standard_errors,
)
from dotphase.theory.responses import Responses
from dotphase.theory.settings import MIN_LOG2_POINTS
from dotphase.theory.solution import Solution
from dotphase.theory.stability import Multipliers, Stability, assess_stability


@dataclass(frozen=True, eq=False)
class SolvedPoint:
    """A solution and the derivatives of the map at its fixed point.

    Attributes
    ----------
    evaluated : the averages at the fixed point
    jacobian : derivatives with which a neighbor can be solved; None if they are not known
    located : the fixed point on its number of points, from which more can be added
    """

    solution: Solution
    evaluated: EvaluatedPoint
    jacobian: Jacobian | None
    located: Located

    def predict(self, target: StateEvolutionMap) -> Vector:
        """Predict the fixed point at another alpha: one Newton step with the averages known here.

        They do not depend on alpha, so that the map at the other alpha costs no evaluation. For a
        small change of alpha this is the tangent of the branch.
        """
        x = self.evaluated.x
        if self.jacobian is None:
            return x
        residual = target.advance(x, self.evaluated.mean) - x
        if not np.all(np.isfinite(residual)):
            return x
        predicted = x + limited_step(self.jacobian.newton_step(residual), target.scale(x))
        return predicted if target.admissible(predicted) else x


@dataclass(frozen=True, eq=False)
class Refined:
    """A fixed point whose standard errors meet the tolerance.

    Attributes
    ----------
    located : the fixed point on the last number of points
    evaluated : the averages there
    jacobian : derivatives that are precise enough for the error bars; None without a fixed point
    """

    located: Located
    evaluated: EvaluatedPoint
    jacobian: Jacobian | None

    @property
    def evaluator(self) -> PointEvaluator[StateEvolutionMap]:
        """Evaluator of the map."""
        return self.located.evaluator

    @property
    def converged(self) -> bool:
        """True if this is a fixed point with a finite loss."""
        return self.located.point.outcome.success and math.isfinite(self.evaluated.train_loss)


@dataclass(frozen=True, eq=False)
class MeasuredStability:
    """Response and stability of a fixed point; `responses` is None without one."""

    responses: Responses | None
    multipliers: Multipliers
    jacobian: Jacobian | None


def solve_point(
    spec: PointSpec,
    initial: Overlaps,
    warm_start: ProxWarmStart,
    neighbor: SolvedPoint | None = None,
    *,
    retry_damped: bool = True,
    stop_if_flat: bool = False,
    stop_at_saddle: bool = False,
) -> SolvedPoint:
    """Solve for the fixed point of a branch.

    Parameters
    ----------
    initial : Overlaps
        Overlaps in the basin of the branch; with a `neighbor`, those of the neighbor.
    warm_start : ProxWarmStart
        Initial states of the proximal maps; updated.
    neighbor : SolvedPoint, optional
        A fixed point of the same branch at a nearby alpha.
    retry_damped, stop_if_flat : bool
        See `locate`.
    stop_at_saddle : bool
        See `refine`.
    """
    fixed_point_map = StateEvolutionMap.from_initial(spec.model, spec.alpha, initial)
    evaluator = PointEvaluator(fixed_point_map, spec.settings, warm_start)
    located = None
    with time_limit(spec.settings.max_seconds):
        try:
            if neighbor is not None and neighbor.jacobian is not None:
                predicted = neighbor.predict(fixed_point_map)
                located = track(spec, evaluator, predicted, neighbor.jacobian)
            if located is None:
                located = locate(
                    spec, evaluator, initial, retry_damped=retry_damped, stop_if_flat=stop_if_flat
                )
        except OutOfTime as stop:
            return _solved(spec, *_best_so_far(stop.evaluator))
        return finish(spec, located, stop_at_saddle=stop_at_saddle)


def finish(spec: PointSpec, located: Located, *, stop_at_saddle: bool = False) -> SolvedPoint:
    """Refine a located fixed point and measure its stability."""
    try:
        refined = refine(located, stop_at_saddle=stop_at_saddle)
        return _solved(spec, refined, measure_stability(refined))
    except OutOfTime as stop:
        return _solved(spec, *_best_so_far(stop.evaluator))


def _solved(spec: PointSpec, refined: Refined, measured: MeasuredStability) -> SolvedPoint:
    solution = _solution(spec, refined, measured)
    return SolvedPoint(solution, refined.evaluated, measured.jacobian, refined.located)


def _best_so_far(
    evaluator: PointEvaluator[StateEvolutionMap],
) -> tuple[Refined, MeasuredStability]:
    """The last point on the most Gaussian points, of a solve whose time is over."""
    evaluated, count = evaluator.finest, evaluator.n_evaluations
    x, image = evaluated.x, evaluated.image
    residual = float(np.max(np.abs(image - x) / evaluator.map.scale(x)))
    point = FixedPoint(x, image, residual, count, Outcome.TIME)
    located = Located(evaluator, point, evaluated.log2_points, evaluated.log2_points)
    return Refined(located, evaluated, None), MeasuredStability(None, Multipliers(), None)


def refine(located: Located, *, stop_at_saddle: bool = False) -> Refined:
    """Add Gaussian points until the standard errors meet the tolerance, with Newton steps."""
    evaluator, settings = located.evaluator, located.evaluator.settings
    measured, point, level = located.measured_jacobian, located.point, located.log2_points
    updated = located.updated_jacobian
    while point.outcome.success:
        if measured is None and not is_zero(evaluator.map.overlaps(point.x), evaluator.map.model):
            # Jumps make finite differences noisy, so this needs almost as many points as the
            # result.
            error_level = max(level - 2, min(level, MIN_LOG2_POINTS))
            measured = measure_jacobian(evaluator, point.x, error_level)
        evaluated = evaluator.evaluate(point.x, level)
        is_final = settings.log2_points is not None or level >= settings.max_log2_points
        if is_final or located.is_provisional:
            break
        required = required_log2_points(relative_error(evaluated, measured), level, settings)
        if required <= level:
            break
        current = Refined(replace(located, log2_points=level), evaluated, measured)
        if stop_at_saddle and measure_stability(current).multipliers.kind == "saddle":
            break
        level = required
        point, updated = newton_or_iterate(evaluator, point.x, level, measured or updated)
        if level > MIN_LOG2_POINTS + 2 and evaluated.jump_fraction >= MAX_JUMP_FRACTION:
            measured = None
    located = replace(located, point=point, log2_points=level)
    return Refined(located, evaluator.evaluate(point.x, level), measured)


def measure_stability(refined: Refined) -> MeasuredStability:
    """Measure the response and the multipliers; add points while minimum or saddle is undecided."""
    evaluator, evaluated, jacobian = refined.evaluator, refined.evaluated, refined.jacobian
    unknown = MeasuredStability(None, Multipliers(), jacobian)
    if not refined.converged:
        return unknown
    responses = evaluated.responses()
    if not np.isfinite(responses.jacobian).all() and evaluator.find_nonfinite_cause(evaluated):
        return unknown
    full = full_jacobian(evaluator, evaluated, jacobian, responses)
    jacobian = _with_exact_columns(jacobian, full)
    multipliers = measure_multipliers(evaluator.map, evaluated.x, full)
    level, max_level = refined.located.log2_points, refined.located.max_log2_points
    may_add_points = evaluator.settings.log2_points is None
    while multipliers.kind == "marginal" and may_add_points and level < max_level:
        level = min(level + 2, max_level)
        finer = evaluator.evaluate(evaluated.x, level)
        full = full_jacobian(evaluator, finer, jacobian, finer.responses())
        multipliers = measure_multipliers(evaluator.map, finer.x, full)
    return MeasuredStability(responses, multipliers, jacobian)


def _with_exact_columns(
    jacobian: Jacobian | None, full: Float[np.ndarray, "scrambles n n"]
) -> Jacobian | None:
    """The Jacobian with the columns that are known without finite differences."""
    if jacobian is None:
        return None
    free = jacobian.free
    matrix = np.mean(full, axis=0)[np.ix_(free, free)]
    return Jacobian.from_matrix(free, matrix, jacobian.test_gradient) or jacobian


def _solution(spec: PointSpec, refined: Refined, measured: MeasuredStability) -> Solution:
    """Collect the results at a point."""
    point, evaluated = refined.located.point, refined.evaluated
    samples = scramble_values(evaluated, measured.jacobian)
    stderr = standard_errors(samples)
    stability, changes = _verdict(spec, evaluated, measured)
    return Solution(
        model=spec.model,
        alpha=spec.alpha,
        branch=spec.branch,
        found=classify(spec.model, evaluated.overlaps),
        overlaps=Overlaps(*(np.asarray(part) for part in evaluated.overlaps)),
        train_loss=evaluated.train_loss,
        free_energy=evaluated.free_energy,
        test_error=evaluated.test_error,
        linear_test_error=spec.linear_test_error,
        residual=point.residual,
        iterations=refined.evaluator.n_evaluations,
        converged=measured.responses is not None,
        message=_message(spec, refined, measured, stderr),
        stderr=stderr,
        model_error=model_errors(
            evaluated.overlaps, evaluated.train_loss, evaluated.test_error, changes
        ),
        samples=samples,
        loss_slope=float(evaluated.mean.moreau),
        stability=stability,
        log2_points=evaluated.log2_points,
        seed=spec.settings.seed,
        seconds=time.perf_counter() - refined.evaluator.start_time,
    )


def _verdict(
    spec: PointSpec, evaluated: EvaluatedPoint, measured: MeasuredStability
) -> tuple[Stability, dict[str, float]]:
    """The stability, and the relative changes that symmetry breaking would make."""
    responses = measured.responses
    if responses is None:
        unknown = Stability(math.nan, math.nan, False, "the iteration did not converge")
        return unknown, dict.fromkeys(LAWS, math.nan)
    averages = (spec.model, spec.alpha, evaluated.overlaps, evaluated.mean, responses)
    signal = explained_variance(spec.model, evaluated.overlaps)
    changes = relative_errors(stiffness_lost(*averages), signal)
    return assess_stability(*averages, measured.multipliers, changes), changes


def _message(
    spec: PointSpec, refined: Refined, measured: MeasuredStability, stderr: dict[str, float]
) -> str:
    """Why the solver stopped, and whether the errors meet the tolerance."""
    settings, evaluator, evaluated = spec.settings, refined.evaluator, refined.evaluated
    point = refined.located.point
    message = point.outcome.message
    if point.outcome is Outcome.TIME:
        return (
            f"{message}: one step changes the overlaps by {point.residual:.1e} on "
            f"2^{evaluated.log2_points} points; raise max_seconds or lower log2_points"
        )
    if measured.responses is None:
        cause = evaluator.nonfinite_cause
        if evaluator.first_nonfinite is not None and cause is None:
            cause = diagnose_averages(evaluator.first_nonfinite) or unknown_cause(spec.model)
        return message if cause is None else f"{Outcome.NOT_FINITE.message}: {cause}"
    if largest_relative_error(evaluated, stderr) > settings.rtol and settings.log2_points is None:
        errors = relative_errors_of(evaluated, stderr)
        name = max(errors, key=errors.__getitem__)
        message += (
            f", but the relative quadrature error of {name}, {errors[name]:.1e}, is above "
            f"rtol = {settings.rtol:g} on 2^{evaluated.log2_points} points: "
            "raise max_log2_points or rtol"
        )
    return message
