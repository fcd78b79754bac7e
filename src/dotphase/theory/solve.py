"""Solving state evolution: one point, or many.

A solve has three stages. On few Gaussian points the fixed point is found, with damping and
acceleration that stay on the branch (`dotphase.fixedpoint`). There the Jacobian of the map
is measured by finite differences. With its help the point is moved to the fixed point on
many points in a few evaluations, and the spread of the independent scrambles is turned into
standard errors; points are added until those meet the tolerance.

Each solve is a generator of queries (`dotphase.theory.evaluate`), so that the same code
serves a single point and a batch.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Float

from dotphase import validate
from dotphase.baselines import linear_test_error
from dotphase.errors import InvalidInput
from dotphase.fields import BLOCK_LOG2, SCRAMBLES
from dotphase.fixedpoint import FixedPoint, Iteration, Outcome, fixed_point
from dotphase.model import Model
from dotphase.precision import in_double_precision
from dotphase.prox import Track
from dotphase.theory.branches import BRANCHES, classify, starting_overlaps
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.evaluate import (
    Answer,
    Evaluator,
    Query,
    evaluate,
    evaluate_together,
    responses,
)
from dotphase.theory.evolution import (
    conjugates,
    free_energy,
    next_overlaps,
    test_error,
    training_energy,
)
from dotphase.theory.overlaps import Overlaps, admissible, check_overlaps
from dotphase.theory.solution import Solution, norms_of
from dotphase.theory.stability import Stability, judge

Vector = Float[np.ndarray, " n"]
T = TypeVar("T")

#: log2 of the points on which the fixed point is found and its Jacobian measured.
COARSE = 13
#: log2 of the fewest and, by default, most points a result is reported from.
FEWEST, MOST = 14, 20
#: The error of scrambled Sobol averages falls about like points^-RATE (measured: .8 to 1).
RATE = 0.8
#: Turns a standard error from few scrambles into one that covers 68% (Student's t).
SMALL_SAMPLE = 1.08
#: The errors are themselves known to a quarter or so: they must clear the tolerance by this.
MARGIN = 1.5
#: Step of the finite differences, in units of each coordinate's scale.
DIFFERENCE = 0.02


@dataclass(frozen=True)
class Settings:
    """How to solve.

    Attributes
    ----------
    rtol : relative standard error that ends the growth of the quadrature
    points : log2 of a fixed number of points; None lets it grow from `FEWEST` to `most`
    most : log2 of the most points
    seed : seed of the Gaussian points
    iteration : damping, acceleration, tolerance of the fixed-point iteration; None leaves
        them to `iteration_on`
    """

    rtol: float = 2e-3
    points: int | None = None
    most: int = MOST
    seed: int = 0
    iteration: Iteration | None = None

    def iteration_on(self, log2_points: int) -> Iteration:
        """Settings of the iteration on a given number of points.

        Far below the quadrature error, but not below the weight of two points: the map
        moves by that much when two of them jump, and no iteration can settle deeper.
        """
        if self.iteration is not None:
            return self.iteration
        noise = 2.0 ** (1 - log2_points)
        return Iteration(tolerance=max(min(1e-5, self.rtol / 100), noise), floor=10 * noise)


@in_double_precision
def solve(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    rtol: float = 2e-3,
    points: int | None = None,
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
    points : int, optional
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
    settings = check_settings(rtol, points, most, seed, iteration)
    return run([_solve_job(model, check_alpha(alpha), start, settings)])[0]


@in_double_precision
def solve_many(
    problems: Iterable[tuple[Model, float, str | Overlaps]],
    *,
    rtol: float = 2e-3,
    points: int | None = None,
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
    settings = check_settings(rtol, points, most, seed, iteration)
    jobs = [
        _solve_job(model, check_alpha(alpha), start, settings) for model, alpha, start in problems
    ]
    return run(jobs, lanes=lanes, progress=progress)


@in_double_precision
def continue_in_alpha(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str] = ("semantic", "positional"),
    *,
    rtol: float = 2e-3,
    points: int | None = None,
    most: int = MOST,
    seed: int = 0,
    iteration: Iteration | None = None,
    progress: Callable[[Solution], None] | None = None,
) -> dict[str, list[Solution]]:
    """Follow branches along a grid of alpha, each point started from its neighbour.

    The grid is walked from the largest alpha down; where the neighbour is not on the branch
    or its continuation is lost, the branch's own starting point is tried as well.

    Returns
    -------
    dict
        For each branch its solutions, in the order of `alphas`.
    """
    settings = check_settings(rtol, points, most, seed, iteration)
    grid = [check_alpha(alpha) for alpha in alphas]
    jobs = [_continuation_job(model, grid, branch, settings, progress) for branch in branches]
    return dict(zip(branches, run(jobs), strict=True))


def check_alpha(alpha: object) -> float:
    """A valid sample complexity."""
    return validate.number("alpha", alpha, above=0)


def check_settings(
    rtol: float, points: int | None, most: int, seed: int, iteration: Iteration | None
) -> Settings:
    """Validated settings of a solve."""
    rtol = validate.number("rtol", rtol, above=0)
    most = validate.whole("most", most, at_least=BLOCK_LOG2, at_most=24)
    if points is not None:
        points = validate.whole("points", points, at_least=BLOCK_LOG2, at_most=24)
    seed = validate.whole("seed", seed, at_least=0)
    return Settings(rtol, points, most, seed, iteration)


Job = Generator[Query, Answer, T]


def run(
    jobs: Sequence[Job[T]],
    *,
    lanes: int | None = None,
    progress: Callable[[T], None] | None = None,
) -> list[T]:
    """Run jobs to their ends: side by side in vmapped lanes, or spread over threads."""
    if lanes is None:
        lanes = 1 if jax.default_backend() == "cpu" else 16
    report = progress or (lambda result: None)
    if lanes > 1:
        return _run_in_lanes(jobs, validate.whole("lanes", lanes, at_least=1), report)
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers <= 1:
        results = []
        for job in jobs:
            results.append(_run_alone(job))
            report(results[-1])
        return results
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(in_double_precision(_run_alone), job, stop) for job in jobs]
        try:
            for future in futures:
                report(future.result())
        except BaseException:
            # Interrupted or failed: threads cannot be killed, so they are asked to stop.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _run_alone(job: Job[T], stop: threading.Event | None = None) -> T:
    try:
        query = next(job)
        while stop is None or not stop.is_set():
            query = job.send(evaluate(query))
    except StopIteration as end:
        result: T = end.value
        return result
    job.close()
    raise KeyboardInterrupt


def _run_in_lanes(jobs: Sequence[Job[T]], lanes: int, report: Callable[[T], None]) -> list[T]:
    """Keep `lanes` jobs in flight; queries of one structure share a vmapped call."""
    results: dict[int, T] = {}
    waiting = list(range(len(jobs)))[::-1]
    asked: dict[int, Query] = {}

    def advance(index: int, answer: Answer | None) -> None:
        try:
            job = jobs[index]
            asked[index] = next(job) if answer is None else job.send(answer)
        except StopIteration as end:
            asked.pop(index, None)
            results[index] = end.value
            report(end.value)

    while waiting or asked:
        while waiting and len(asked) < lanes:
            advance(waiting.pop(), None)
        groups: dict[object, list[int]] = {}
        for index, query in asked.items():
            groups.setdefault(query.group, []).append(index)
        for members in groups.values():
            queries = [asked[index] for index in members]
            # A full set of lanes whatever their number, so that nothing is compiled again.
            filled = queries + [queries[0]] * (lanes - len(queries))
            for index, answer in zip(members, evaluate_together(filled), strict=False):
                advance(index, answer)
    return [results[index] for index in range(len(jobs))]


class _Lane:
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

    def at(self, alpha: float) -> _Lane:
        """The same problem at another alpha, its proximal maps started where these are."""
        lane = _Lane(self.model, alpha, self.settings)
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

    def _advance(self, x: Vector, averages: object) -> np.ndarray:
        overlaps = self.coordinates.unpack(x)
        try:
            hats = conjugates(self.model, self.alpha, overlaps, averages)  # type: ignore[arg-type]
            image = self.coordinates.pack(next_overlaps(self.model, hats))
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)
        image[..., self.held] = 0.0
        return image

    def admissible(self, x: Vector) -> bool:
        """Whether x describes Gaussian fields."""
        return admissible(self.model, self.coordinates.unpack(x))


def _iterate(
    lane: _Lane, x: Vector, log2_points: int, iteration: Iteration
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
class _Jacobian:
    """Derivatives at a fixed point: ``(1 - J)^{-1}`` of the map, and of the test error."""

    free: np.ndarray
    inverse: Float[np.ndarray, "n n"]
    test: Vector

    def newton(self, residual: np.ndarray) -> np.ndarray:
        """``(1 - J)^{-1} residual`` on the free coordinates; rows are separate residuals."""
        step = np.zeros_like(residual)
        step[..., self.free] = residual[..., self.free] @ self.inverse.T
        return step

    def updated(self, step: Vector, change: Vector, scale: Vector) -> _Jacobian:
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


def _differentiate(
    lane: _Lane, x: Vector, log2_points: int
) -> Generator[Query, Answer, _Jacobian | None]:
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
    return _Jacobian(free, inverse, np.asarray(slopes))


def _refine(
    lane: _Lane, x: Vector, log2_points: int, jacobian: _Jacobian
) -> Generator[Query, Answer, tuple[FixedPoint, _Jacobian]]:
    """Newton steps to the fixed point on other points or at another alpha, close to x.

    The Jacobian measured before is corrected on the way (Broyden). Ends without success
    where the steps make no progress.
    """
    tolerance = lane.settings.iteration_on(log2_points).tolerance
    best = FixedPoint(x, x, math.inf, 0, Outcome.ITERATIONS)
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
            best = FixedPoint(x, image, size, lane.count, Outcome.ITERATIONS)
        if last is not None:
            jacobian = jacobian.updated(x - last[0], residual - last[1], scale)
        last = (x, residual)
        step = jacobian.newton(residual)
        x = x + step / max(1.0, float(np.max(np.abs(step) / scale)) / 0.2)
    return best, jacobian


def _refine_or_iterate(
    lane: _Lane, x: Vector, log2_points: int, jacobian: _Jacobian | None
) -> Generator[Query, Answer, tuple[FixedPoint, _Jacobian | None]]:
    """`_refine`, and the general iteration from its best point where that fails."""
    if jacobian is not None:
        point, jacobian = yield from _refine(lane, x, log2_points, jacobian)
        if point.outcome.success:
            return point, jacobian
        x = point.x
    point = yield from _iterate(lane, x, log2_points, lane.settings.iteration_on(log2_points))
    return point, jacobian


def _solve_job(
    model: Model, alpha: float, start: str | Overlaps, settings: Settings
) -> Job[Solution]:
    """A generator that solves one point (validation happens here, before it runs)."""
    if isinstance(start, str):
        branch = validate.choice("start", start, BRANCHES)
        overlaps = starting_overlaps(model, branch)
    elif isinstance(start, Overlaps):
        branch, overlaps = "custom", check_overlaps(model, start)
    else:
        raise InvalidInput("start", start, "must be one of " + ", ".join(BRANCHES) + " or Overlaps")

    def job() -> Job[Solution]:
        lane = _Lane(model, alpha, settings)
        baseline = linear_test_error(model, seed=settings.seed)
        solution, _ = yield from _follow(lane, branch, overlaps, baseline)
        return solution

    return job()


def _continuation_job(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: Settings,
    progress: Callable[[Solution], None] | None,
) -> Job[list[Solution]]:
    validate.choice("branch", branch, BRANCHES)
    own_start = starting_overlaps(model, branch)

    def job() -> Job[list[Solution]]:
        baseline = linear_test_error(model, seed=settings.seed)
        found: dict[int, Solution] = {}
        last: tuple[Overlaps, _Jacobian | None] | None = None
        ended = False
        lane = _Lane(model, alphas[0], settings)
        for index in np.argsort(alphas)[::-1]:
            lane = lane.at(alphas[index])
            solution = None
            if last is not None:
                solution, jacobian = yield from _follow(lane, branch, last[0], baseline, last[1])
            if solution is None or not (solution.on_branch and solution.converged):
                lane = _Lane(model, alphas[index], settings)
                again, jacobian = yield from _follow(
                    lane, branch, own_start, baseline, careful=not ended
                )
                solution = again if solution is None or again.on_branch else solution
            here = solution.on_branch and solution.converged
            last = (solution.overlaps, jacobian) if here else None
            ended = not solution.on_branch
            found[int(index)] = solution
            if progress is not None:
                progress(solution)
        return [found[index] for index in range(len(alphas))]

    return job()


def _follow(
    lane: _Lane,
    branch: str,
    start: Overlaps,
    baseline: float,
    jacobian: _Jacobian | None = None,
    *,
    careful: bool = True,
) -> Job[tuple[Solution, _Jacobian | None]]:
    """Find the fixed point of a branch and dress it as a `Solution`.

    Parameters
    ----------
    start : Overlaps
        In the basin of the branch; with a `jacobian`, close to the fixed point.
    careful : bool
        Whether to look again with short damped steps where the branch was not found.
    """
    began = time.perf_counter()
    settings = lane.settings
    x = lane.coordinates.pack(start)
    lane.held = lane.coordinates.held_at_zero(x)
    level = settings.points or FEWEST
    coarse = min(COARSE, level)

    def astray(point: FixedPoint) -> bool:
        here = classify(lane.model, lane.coordinates.unpack(point.x))
        return branch not in (here, "custom")

    point = None
    working = jacobian
    if working is not None:
        point, working = yield from _refine(lane, x, level, working)
        if not point.outcome.success or astray(point):
            point = None
        elif lane.count > 4:
            jacobian = None  # the neighbour's Jacobian is out of date
    if point is None:
        rough = replace(settings.iteration_on(coarse), tolerance=1e-3, floor=1e-2)
        point = yield from _iterate(lane, x, coarse, rough)
        if careful and astray(point):
            # Acceleration may have hopped; short damped steps show whether the branch is there.
            slow = replace(rough, memory=0, step=0.2, limit=150)
            again = yield from _iterate(lane, x, coarse, slow)
            point = again if again.outcome.success else point
        working = yield from _differentiate(lane, point.x, coarse)
        point, working = yield from _refine_or_iterate(lane, point.x, level, working)
        jacobian = None

    while point.outcome.success:
        if jacobian is None:
            # Errors are as good as the Jacobian behind them, and jumps make noise in
            # differences: it is measured on almost as many points as the result.
            jacobian = yield from _differentiate(lane, point.x, max(level - 2, min(level, FEWEST)))
        answer = yield from lane.ask(point.x, level)
        if settings.points is not None or level >= settings.most:
            break
        errors = _errors(lane, point.x, answer, jacobian)
        excess = MARGIN * _worst_error(lane, point.x, answer, errors) / settings.rtol
        if excess <= 1:
            break
        wanted = level + max(1, math.ceil(math.log2(min(excess, 1e6)) / RATE))
        level = min(wanted, level + 4, settings.most)
        point, working = yield from _refine_or_iterate(lane, point.x, level, jacobian or working)
        jacobian = None if level > FEWEST + 2 else jacobian
    return _dress(lane, branch, point, level, jacobian, baseline, began), jacobian


def _errors(lane: _Lane, x: Vector, answer: Answer, jacobian: _Jacobian | None) -> dict[str, float]:
    """Standard errors from the spread of the scrambles.

    Scramble k alone would have its fixed point at ``x + (1 - J)^{-1} (F_k(x) - F(x))``. The
    free energy is stationary, so its error is the spread at x itself.
    """
    names = (*Overlaps._fields, "train_loss", "test_error")
    if jacobian is None:
        return dict.fromkeys(names, math.nan)
    shifts = jacobian.newton(lane.images(x, answer) - lane.image(x, answer))
    overlaps = lane.coordinates.unpack(x)
    spread: dict[str, list[float]] = {name: [] for name in Overlaps._fields}
    for shift in shifts:
        for name, value in norms_of(lane.coordinates.unpack(x + shift)).items():
            spread[name].append(value)
    losses = free_energy(lane.model, lane.alpha, overlaps, answer.averages)
    tests = test_error(lane.model, answer.averages) + shifts[:, jacobian.free] @ jacobian.test
    samples = {**spread, "train_loss": losses, "test_error": tests}
    factor = SMALL_SAMPLE / math.sqrt(SCRAMBLES)
    return {name: factor * float(np.std(samples[name], ddof=1)) for name in names}


def _worst_error(lane: _Lane, x: Vector, answer: Answer, jacobian: _Jacobian | None) -> float:
    """Largest relative standard error of the results that do not vanish by symmetry."""
    errors = _errors(lane, x, answer, jacobian)
    overlaps = lane.coordinates.unpack(x)
    values = {
        **norms_of(overlaps),
        "train_loss": float(training_energy(lane.model, lane.alpha, overlaps, answer.mean)),
        "test_error": float(test_error(lane.model, answer.mean)),
    }
    found = classify(lane.model, overlaps)
    vanishing = {"semantic": ["m"], "positional": ["theta"], "uninformed": ["m", "theta"]}
    ratios = [
        errors[name] / value
        for name, value in values.items()
        if value > 0 and name not in vanishing.get(found, [])
    ]
    return float(np.max(ratios)) if np.all(np.isfinite(ratios)) else math.inf


def _dress(
    lane: _Lane,
    branch: str,
    point: FixedPoint,
    level: int,
    jacobian: _Jacobian | None,
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
    errors = _errors(lane, x, answer, jacobian)
    message = point.outcome.value
    converged = point.outcome.success and math.isfinite(loss)
    if converged:
        stability = judge(lane.model, lane.alpha, overlaps, answer.mean, responses(query, answer))
        worst = _worst_error(lane, x, answer, errors)
        if worst > settings.rtol and settings.points is None:
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
        stability=stability,
        log2_points=level,
        seed=settings.seed,
        seconds=time.perf_counter() - began,
    )
