"""Solving state evolution: one point, or many.

A solve has three stages. On few Gaussian points the fixed point is found, with damping and
acceleration that stay on the branch (`dotphase._numerics.fixed_point`). There the Jacobian of
the map is measured by finite differences. With its help the point is moved to the fixed point
on many points in a few evaluations, and the spread of the independent scrambles is turned into
standard errors; points are added until those meet the tolerance.

Each solve is a generator of queries (`dotphase.theory.evaluate`), so that the same code
serves a single point and a batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dotphase._numerics import validate
from dotphase._numerics.fixed_point import FixedPoint, Iteration
from dotphase._numerics.outcome import Outcome
from dotphase._numerics.precision import in_double_precision
from dotphase.errors import InvalidInput
from dotphase.finite.linear import linear_test_error
from dotphase.model import Model
from dotphase.theory.branches import BRANCHES, classify, starting_overlaps
from dotphase.theory.evaluate import responses
from dotphase.theory.evolution import free_energy, test_error, training_energy
from dotphase.theory.jobs import Job, run
from dotphase.theory.lane import Jacobian, Lane, differentiate, iterate, refine, refine_or_iterate
from dotphase.theory.overlaps import Overlaps, check_overlaps, is_nothing
from dotphase.theory.settings import FEWEST, MOST, Settings, check_alpha, check_settings
from dotphase.theory.solution import Solution
from dotphase.theory.stability import Stability, judge
from dotphase.theory.uncertainty import scramble_values, standard_errors, worst_error

#: log2 of the points on which the fixed point is found and its Jacobian measured.
COARSE = 13
#: How far away, as a factor of alpha, and in how many steps a branch is looked for that its own
#: start has missed.
REACH, STEPS = 2.5, 8
#: Factors on the weights and on V of a start that are tried where the iteration leaves the
#: admissible overlaps.
OTHER_STARTS = tuple((size, share) for size in (1.0, 2.0, 4.0) for share in (1.0, 0.2, 0.04))[1:]
#: The error of scrambled Sobol averages falls about like points^-RATE (measured: .8 to 1).
RATE = 0.8
#: The errors are themselves known to a quarter or so: they must clear the tolerance by this.
MARGIN = 1.5


@in_double_precision
def solve(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    rtol: float = 2e-3,
    log2_points: int | None = None,
    most: int = MOST,
    seed: int = 0,
    iteration: Iteration | None = None,
) -> Solution:
    """Solve state evolution at one sample complexity.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alpha : float
        Samples per dimension, n/d.
    start : {"semantic", "positional", "uninformed", "mixed"} or Overlaps
        Branch to follow, or overlaps to start from.
    rtol : float
        Relative standard error of the results at which no more points are added.
    log2_points : int, optional
        log2 of the number of Gaussian points, if it should be fixed.
    most : int
        log2 of the most points to use on the way to `rtol`.
    seed : int
        Seed of the Gaussian points.
    iteration : Iteration, optional
        Damping, acceleration and tolerance of the fixed-point iteration.

    Returns
    -------
    Solution
        Check `found`, `converged` and `stability.trusted` before use.
    """
    settings = check_settings(rtol, log2_points, most, seed, iteration)
    return run([solve_job(model, check_alpha(alpha), start, settings)])[0]


@in_double_precision
def solve_many(
    problems: Iterable[tuple[Model, float, str | Overlaps]],
    *,
    rtol: float = 2e-3,
    log2_points: int | None = None,
    most: int = MOST,
    seed: int = 0,
    iteration: Iteration | None = None,
    lanes: int | None = None,
    progress: Callable[[Solution], None] | None = None,
) -> list[Solution]:
    """Solve many points; each succeeds or fails on its own.

    Parameters
    ----------
    problems : iterable of (model, alpha, start)
        As for `solve`.
    lanes : int, optional
        Points per vmapped call. By default 1 on a CPU, where independent points are spread
        over threads instead (measured to be faster), and 16 on an accelerator.
    progress : callable, optional
        Called with each solution as it is finished.

    Other parameters are those of `solve`.
    """
    settings = check_settings(rtol, log2_points, most, seed, iteration)
    jobs = [
        solve_job(model, check_alpha(alpha), start, settings) for model, alpha, start in problems
    ]
    return run(jobs, lanes=lanes, progress=progress)


@in_double_precision
def continue_in_alpha(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str] = ("semantic", "positional"),
    *,
    rtol: float = 2e-3,
    log2_points: int | None = None,
    most: int = MOST,
    seed: int = 0,
    iteration: Iteration | None = None,
    progress: Callable[[Solution], None] | None = None,
) -> dict[str, list[Solution]]:
    """Follow branches along a grid of alpha, each point started from its neighbour.

    The grid is walked from the largest alpha down (a positional branch from the smallest up),
    and back again where the branch was missed; where the neighbour is not on the branch or its
    continuation is lost, the branch's own starting point is tried as well.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities, in any order.
    branches : sequence of str
        Branches to follow, as `start` of `solve`.
    progress : callable, optional
        Called with each solution as it is finished.

    Other parameters are those of `solve`.

    Returns
    -------
    dict
        For each branch its solutions, in the order of `alphas`.
    """
    settings = check_settings(rtol, log2_points, most, seed, iteration)
    grid = [check_alpha(alpha) for alpha in alphas]
    jobs = [continuation_job(model, grid, branch, settings, progress) for branch in branches]
    return dict(zip(branches, run(jobs), strict=True))


@in_double_precision
def continue_many(
    chains: Sequence[tuple[Model, str]],
    alphas: Sequence[float],
    *,
    rtol: float = 2e-3,
    log2_points: int | None = None,
    most: int = MOST,
    seed: int = 0,
    progress: Callable[[Solution], None] | None = None,
) -> list[list[Solution]]:
    """Follow many branches of many models along the same grid of alpha.

    Parameters
    ----------
    chains : sequence of (model, branch)
        What to follow; chains are independent of each other and run side by side.

    Other parameters are those of `continue_in_alpha`.
    """
    settings = check_settings(rtol, log2_points, most, seed, None)
    grid = [check_alpha(alpha) for alpha in alphas]
    jobs = [continuation_job(model, grid, branch, settings, progress) for model, branch in chains]
    return run(jobs)


def solve_job(
    model: Model, alpha: float, start: str | Overlaps, settings: Settings
) -> Job[Solution]:
    """A generator that solves one point, for a caller who runs it in steps of its own.

    Validation happens here, before it runs.
    """
    if isinstance(start, str):
        branch = validate.choice("start", start, BRANCHES)
        overlaps = starting_overlaps(model, branch)
    elif isinstance(start, Overlaps):
        branch, overlaps = "custom", check_overlaps(model, start)
    else:
        raise InvalidInput("start", start, "must be one of " + ", ".join(BRANCHES) + " or Overlaps")

    def job() -> Job[Solution]:
        lane = Lane(model, alpha, settings)
        baseline = linear_test_error(model, seed=settings.seed)
        solution, _ = yield from _follow(lane, branch, overlaps, baseline)
        if not solution.on_branch:
            reached = yield from _reach(lane, branch, baseline)
            solution = reached or solution
        return solution

    return job()


def _reach(lane: Lane, branch: str, baseline: float) -> Job[Solution | None]:
    """Walk to a point from where its branch is easier to find; None if it is lost on the way.

    A positional student has the wider basin with few data, the others with many.
    """
    model, alpha = lane.model, lane.alpha
    far = alpha / REACH if branch == "positional" else alpha * REACH
    path = Follower(model, branch, replace(lane.settings, log2_points=FEWEST + 1))
    for step in np.geomspace(far, alpha, STEPS):
        solution = yield from path.at(float(step))
        if not solution.there:
            return None
    start, jacobian = solution.overlaps, path.jacobian
    solution, _ = yield from _follow(lane.at(alpha), branch, start, baseline, jacobian)
    return solution if solution.there else None


def continuation_job(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: Settings,
    progress: Callable[[Solution], None] | None,
) -> Job[list[Solution]]:
    """A generator that follows a branch along `alphas`, for a caller who runs it in steps."""

    def job() -> Job[list[Solution]]:
        follower = Follower(model, branch, settings)
        # From where the branch has its widest basin: a positional student with few data, the
        # others with many. From the wrong end it is easily missed for a weak look-alike.
        order = np.argsort(alphas)[:: 1 if branch == "positional" else -1]
        found: dict[int, Solution] = {}
        for index in order:
            found[int(index)] = yield from follower.at(alphas[index])
            if progress is not None:
                progress(found[int(index)])
        # Back again: the branch's own start may have missed it where it still exists.
        for last, index in pairwise(order[::-1]):
            if found[int(last)].there and not found[int(index)].there:
                follower = Follower(model, branch, settings)
                yield from follower.at(alphas[last])
                again = yield from follower.at(alphas[index])
                found[int(index)] = again if again.there else found[int(index)]
        return [found[index] for index in range(len(alphas))]

    return job()


class Follower:
    """Follows a branch from alpha to alpha, each point started from the one before.

    Where the last point was not on the branch, or its continuation is lost, the branch's
    own starting point is tried as well.
    """

    def __init__(self, model: Model, branch: str, settings: Settings) -> None:
        validate.choice("branch", branch, BRANCHES)
        self.model, self.branch, self.settings = model, branch, settings
        self._own_start = starting_overlaps(model, branch)
        self._baseline: float | None = None
        self._lane: Lane | None = None
        self._last: tuple[Overlaps, Jacobian | None] | None = None
        self._ended = False

    @property
    def jacobian(self) -> Jacobian | None:
        """Derivatives at the last point on the branch."""
        return self._last[1] if self._last else None

    def at(self, alpha: float) -> Job[Solution]:
        """The solution at another alpha."""
        if self._baseline is None:
            self._baseline = linear_test_error(self.model, seed=self.settings.seed)
        solution = None
        if self._last is not None and self._lane is not None:
            self._lane = self._lane.at(alpha)
            start, jacobian = self._last
            solution, jacobian = yield from _follow(
                self._lane, self.branch, start, self._baseline, jacobian
            )
        if solution is None or not solution.there:
            self._lane = Lane(self.model, alpha, self.settings)
            again, jacobian = yield from _follow(
                self._lane, self.branch, self._own_start, self._baseline, careful=not self._ended
            )
            solution = again if solution is None or again.on_branch else solution
        self._last = (solution.overlaps, jacobian) if solution.there else None
        self._ended = not solution.on_branch
        return solution


def _follow(
    lane: Lane,
    branch: str,
    start: Overlaps,
    baseline: float,
    jacobian: Jacobian | None = None,
    *,
    careful: bool = True,
) -> Job[tuple[Solution, Jacobian | None]]:
    """Find the fixed point of a branch and dress it as a `Solution`.

    Parameters
    ----------
    start : Overlaps
        In the basin of the branch; with a `jacobian`, close to the fixed point.
    careful : bool
        Whether to look again with short damped steps where the branch was not found, and to
        work out precisely what was found instead.
    """
    began = time.perf_counter()
    settings = lane.settings
    x = lane.coordinates.pack(start)
    lane.held = lane.coordinates.held_at_zero(x)
    level = settings.log2_points or FEWEST
    coarse = min(COARSE, level)

    def astray(point: FixedPoint) -> bool:
        here = classify(lane.model, lane.coordinates.unpack(point.x))
        return branch not in (here, "custom")

    point = None
    working = jacobian
    if working is not None:
        point, working = yield from refine(lane, x, level, working)
        if not point.outcome.success or astray(point):
            point = None
        elif lane.count > 4:
            jacobian = None  # the neighbour's Jacobian is out of date
    if point is None:
        rough = replace(settings.iteration_on(coarse), tolerance=1e-3, floor=1e-2)
        point = yield from iterate(lane, x, coarse, rough)
        for size, share in OTHER_STARTS:
            if point.outcome is not Outcome.LEFT_DOMAIN:
                break
            # The first steps went out of bounds: weights too small, or a response too large.
            x = lane.coordinates.pack(_rescaled(start, size, share))
            point = yield from iterate(lane, x, coarse, rough)
        if careful and astray(point):
            # Acceleration may have hopped; short damped steps show whether the branch is there.
            slow = replace(rough, memory=0, step=0.2, limit=150)
            again = yield from iterate(lane, x, coarse, slow)
            point = again if again.outcome.success else point
        if not careful and astray(point):
            level = coarse  # known to be lost already: what is there instead need not be precise
        working = yield from differentiate(lane, point.x, coarse)
        point, working = yield from refine_or_iterate(lane, point.x, level, working)
        jacobian = None

    while point.outcome.success:
        nothing = is_nothing(lane.coordinates.unpack(point.x), lane.model)
        if jacobian is None and not nothing:
            # Errors are as good as the Jacobian behind them, and jumps make noise in
            # differences: it is measured on almost as many points as the result.
            jacobian = yield from differentiate(lane, point.x, max(level - 2, min(level, FEWEST)))
        answer = yield from lane.ask(point.x, level)
        if settings.log2_points is not None or level >= settings.most or level == coarse:
            break
        errors = standard_errors(scramble_values(lane, point.x, answer, jacobian))
        excess = MARGIN * worst_error(lane, point.x, answer, errors) / settings.rtol
        if excess <= 1:
            break
        wanted = level + max(1, math.ceil(math.log2(min(excess, 1e6)) / RATE))
        level = min(wanted, level + 4, settings.most)
        point, working = yield from refine_or_iterate(lane, point.x, level, jacobian or working)
        jacobian = None if level > FEWEST + 2 else jacobian
    return _dress(lane, branch, point, level, jacobian, baseline, began), jacobian


def _rescaled(start: Overlaps, size: float, share: float) -> Overlaps:
    """A start with weights Q larger by `size`, and V times `share`."""
    q, m, V, theta = (np.asarray(part) for part in start)
    return Overlaps(q=size**2 * q, m=size * m, V=share * V, theta=size * theta)


def _dress(
    lane: Lane,
    branch: str,
    point: FixedPoint,
    level: int,
    jacobian: Jacobian | None,
    baseline: float,
    began: float,
) -> Solution:
    """The solution at a point whose averages were the last to be asked for."""
    settings = lane.settings
    answer, query = lane.answer, lane.query
    assert answer is not None and query is not None
    overlaps = query.overlaps
    x = lane.coordinates.pack(overlaps)
    loss = float(training_energy(lane.model, lane.alpha, overlaps, answer.mean))
    samples = scramble_values(lane, x, answer, jacobian)
    errors = standard_errors(samples)
    message = point.outcome.message
    converged = point.outcome.success and math.isfinite(loss)
    if converged:
        stability = judge(lane.model, lane.alpha, overlaps, answer.mean, responses(query, answer))
        worst = worst_error(lane, x, answer, errors)
        if worst > settings.rtol and settings.log2_points is None:
            message += (
                f", but the quadrature error {worst:.1e} is above rtol = {settings.rtol:g} "
                f"at the cap of 2^{level} points"
            )
    else:
        stability = Stability(math.nan, math.nan, False, "the iteration did not converge")
    return Solution(
        model=lane.model,
        alpha=lane.alpha,
        branch=branch,
        found=classify(lane.model, overlaps),
        overlaps=Overlaps(*(np.asarray(part) for part in overlaps)),
        train_loss=loss,
        free_energy=float(free_energy(lane.model, lane.alpha, overlaps, answer.mean)),
        test_error=float(test_error(lane.model, answer.mean)),
        linear_test_error=baseline,
        residual=point.residual,
        iterations=lane.count,
        converged=converged,
        message=message,
        stderr=errors,
        samples=samples,
        loss_slope=float(answer.mean.moreau),
        stability=stability,
        log2_points=level,
        seed=settings.seed,
        seconds=time.perf_counter() - began,
    )
