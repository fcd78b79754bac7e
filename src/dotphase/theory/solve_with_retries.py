"""Solve at one alpha, with retries where the initialization misses the branch.

1. Solve from the initialization (`dotphase.theory.solve_point`).
2. If this misses the branch, finds a saddle, or stops where the map is almost flat: follow the
   branch from a distant alpha, where its basin is wide.
3. If one set of Gaussian points does not determine the result, solve with other seeds, too.
"""

from __future__ import annotations

import time
from dataclasses import replace

from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.theory.branches import BRANCHES
from dotphase.theory.continuation import BranchContinuation
from dotphase.theory.driver import is_out_of_time, time_limit
from dotphase.theory.locate import COARSE_LOG2_POINTS
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.point_evaluator import ProxWarmStart
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.seed_ensemble import solve_with_seeds
from dotphase.theory.settings import MIN_LOG2_POINTS, SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve_point import SolvedPoint, finish, solve_point

#: Largest number of iterations of a point on the way from a distant alpha; more of them precede a
#: lost branch.
APPROACH_MAX_STEPS = 100


def solve_with_retries(
    model: Model, alpha: float, branch: str, initial: Overlaps, settings: SolverSettings
) -> Solution:
    """Solve at one alpha from an initialization, or from a distant alpha if that misses the branch.

    A saddle may be a weak look-alike of a minimum that the initialization has missed, so it is
    approached from a distance as well.
    """
    with time_limit(settings.max_seconds):
        return _solve_with_retries(model, alpha, branch, initial, settings)


def _solve_with_retries(
    model: Model, alpha: float, branch: str, initial: Overlaps, settings: SolverSettings
) -> Solution:
    start_time = time.perf_counter()
    spec = PointSpec.of(model, alpha, branch, settings)
    warm_start = ProxWarmStart()
    is_named = branch in BRANCHES
    adaptive = is_named and settings.log2_points is None
    point = solve_point(
        spec,
        initial,
        warm_start,
        retry_damped=not adaptive,
        stop_if_flat=is_named,
        stop_at_saddle=is_named,
    )
    first = point.solution
    if first.message.startswith(Outcome.NOT_FINITE.message):
        return first  # Another initialization would fail, too.
    if is_out_of_time():
        return first
    missed = not first.matches_branch
    is_coarse = first.log2_points < settings.initial_log2_points
    if is_named and (missed or is_coarse or first.stability.kind == "saddle"):
        approached = _approach_from_far(spec, warm_start, want_minimum=not missed)
        if approached is None and not missed:
            again = solve_point(spec, initial, ProxWarmStart()) if is_coarse else None
            approached = again or finish(spec, point.located)
        if approached is None and adaptive and first.may_exist:
            # Acceleration may have left the branch; damped steps do not.
            approached = solve_point(spec, initial, ProxWarmStart())
        point = approached or point
    solution = point.solution
    if not is_out_of_time():
        solution = solve_with_seeds(spec, solution, point if solution.on_branch else None)
    return replace(solution, seconds=time.perf_counter() - start_time)


def _approach_from_far(
    spec: PointSpec, warm_start: ProxWarmStart, *, want_minimum: bool
) -> SolvedPoint | None:
    """Follow a branch from an alpha where its basin is wide; None if it is lost on the way."""
    log2_points = COARSE_LOG2_POINTS if want_minimum else MIN_LOG2_POINTS
    settings = spec.settings.on_the_way(log2_points, APPROACH_MAX_STEPS)
    continuation = BranchContinuation(spec.model, spec.branch, settings)
    solution = continuation.approach(spec.alpha, minimum=want_minimum)
    if solution is None:
        return None
    point = solve_point(
        spec,
        solution.overlaps,
        warm_start.for_neighbor(),
        continuation.last,
        stop_at_saddle=want_minimum,
    )
    is_wanted = not want_minimum or point.solution.stability.kind == "minimum"
    return point if point.solution.on_branch and is_wanted else None
