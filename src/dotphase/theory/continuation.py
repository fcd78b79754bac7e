"""Finding the fixed point of a branch, and following it from alpha to alpha.

A point is found in three stages. On few Gaussian points it is found, with damping and
acceleration that stay on the branch (`dotphase.numerics.fixed_point`). There the Jacobian of
the map is measured by finite differences, and with it the errors, which say how many points are
needed. The Jacobian moves the point to the fixed point on those in a few evaluations, and the
spread of the independent scrambles is turned into standard errors; points are added until those
meet the tolerance.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.model.nonfinite import unknown_cause
from dotphase.numerics.fixed_point import FixedPoint, Vector
from dotphase.numerics.outcome import Outcome
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import alignment, belongs, classify
from dotphase.theory.driver import Steps
from dotphase.theory.fixed_point_map import Free
from dotphase.theory.model_error import (
    LAWS,
    explained,
    model_errors,
    relative_errors,
    stiffness_lost,
)
from dotphase.theory.multipliers import multipliers, whole_jacobian
from dotphase.theory.nonfinite import diagnose_averages
from dotphase.theory.overlaps import Overlaps, is_nothing
from dotphase.theory.point_iteration import (
    Evaluation,
    Jacobian,
    Memory,
    Search,
    closer,
    differentiate,
    iterate,
    refine,
    refine_or_iterate,
    settle,
)
from dotphase.theory.quadrature_error import scramble_values, standard_errors, worst_error
from dotphase.theory.seed_ensemble import APART, OTHERS, combined, decided_against, needs_seeds
from dotphase.theory.settings import MIN_LOG2_POINTS, SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.stability import Multipliers, Responses, Stability, judge

#: log2 of the points on which the fixed point is found and its Jacobian measured.
COARSE = 13
#: How far away, as a factor of alpha, and in how many steps a branch is looked for that its own
#: start has missed.
REACH, STEPS = 2.5, 8
#: Most evaluations for a point on that way: what takes more is about to be lost.
ON_THE_WAY = 100
#: Factors on the weights and on V of a start that are tried where the iteration leaves the
#: admissible overlaps.
OTHER_STARTS = tuple((size, share) for size in (1.0, 2.0, 4.0) for share in (1.0, 0.2, 0.04))[1:]
#: The error of scrambled Sobol averages falls about like points^-RATE (measured: .8 to 1).
RATE = 0.8
#: The errors are themselves known to a quarter or so: they must clear the tolerance by this.
MARGIN = 1.5
#: Relative error on few points above which a point is hardly determined: the map is flat there, as
#: at a weak look-alike of a branch, which is then looked for from afar first.
UNDETERMINED = 0.3
#: Alignment below which an overlap is a trace, and the share of it that one step leaves where it
#: is dying out.
TRACE, DYING = 0.03, 0.95
#: Share of points that can jump below which a Jacobian measured on few points will do.
FEW_JUMPS = 1e-3


@dataclass(frozen=True, eq=False)
class Goal:
    """What is looked for: a branch of a model at one alpha, and how precisely.

    Attributes
    ----------
    linear : test error of the linear positional layer, for comparison
    """

    model: Model
    alpha: float
    branch: str
    settings: SolverSettings
    linear: float


class Follower:
    """Follows a branch from alpha to alpha, each point started from the one before.

    Where the last point was not on the branch, or its continuation is lost, the branch's
    own starting point is tried as well. With `several`, points that one set of Gaussian points
    does not determine are solved with other seeds, too.
    """

    def __init__(
        self, model: Model, branch: str, settings: SolverSettings, *, several: bool = False
    ) -> None:
        self.model, self.settings, self.several = model, settings, several
        self.branch = BRANCHES.check(branch)
        self._own_start = BRANCHES[branch].start(model)
        self._linear: float | None = None
        self._memory = Memory()
        self._last: tuple[Overlaps, Jacobian | None] | None = None
        self._ended = False

    @property
    def jacobian(self) -> Jacobian | None:
        """Derivatives at the last point on the branch."""
        return self._last[1] if self._last else None

    def at(self, alpha: float) -> Steps[Solution]:
        """The solution at another alpha."""
        solution = None
        if self._last is not None:
            solution, jacobian = yield from self._continued(alpha, careful=True)
        if solution is None or not solution.on_branch:
            self._memory, careful = Memory(), not self._ended
            goal = self._goal(alpha)
            again, jacobian = yield from find(goal, self._own_start, self._memory, careful=careful)
            solution = again if solution is None or again.matches_branch else solution
        self._keep(solution, jacobian)
        return (yield from _with_seeds(self._goal(alpha), solution)) if self.several else solution

    def ahead(self, alpha: float) -> Steps[tuple[Solution, Follower]]:
        """A look at an alpha close by, from the last point alone, and the follower who went there.

        This one stays where it is.
        """
        other = copy(self)
        solution, jacobian = yield from other._continued(alpha, careful=False)
        other._keep(solution, jacobian)
        return solution, other

    def _goal(self, alpha: float) -> Goal:
        if self._linear is None:
            self._linear = linear_test_error(self.model, seed=self.settings.seed)
        return Goal(self.model, alpha, self.branch, self.settings, self._linear)

    def _continued(self, alpha: float, careful: bool) -> Steps[tuple[Solution, Jacobian | None]]:
        assert self._last is not None
        self._memory = self._memory.for_another()
        start, jacobian = self._last
        return find(self._goal(alpha), start, self._memory, jacobian, careful=careful)

    def _keep(self, solution: Solution, jacobian: Jacobian | None) -> None:
        self._last = (solution.overlaps, jacobian) if solution.on_branch else None
        self._ended = not solution.matches_branch


def along(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
    *,
    several: bool = True,
) -> Steps[list[Solution]]:
    """The solutions of a branch along `alphas`, in their order; `several` as for a `Follower`."""
    follower = Follower(model, branch, settings, several=several)
    order = np.argsort(alphas)[:: 1 if BRANCHES[branch].from_few else -1]
    found: dict[int, Solution] = {}
    for index in order:
        found[int(index)] = yield from follower.at(alphas[index])
        if progress is not None:
            progress(found[int(index)])
    # Back again: the branch's own start may have missed it where it still exists.
    for last, index in pairwise(order[::-1]):
        if found[int(last)].on_branch and not found[int(index)].on_branch:
            follower = Follower(model, branch, settings, several=several)
            yield from follower.at(alphas[last])
            again = yield from follower.at(alphas[index])
            found[int(index)] = again if again.on_branch else found[int(index)]
    return [found[index] for index in range(len(alphas))]


def one_point(
    model: Model, alpha: float, branch: str, start: Overlaps, settings: SolverSettings
) -> Steps[Solution]:
    """The solution at one alpha from a start, or from afar where that misses the branch."""
    began = time.perf_counter()
    goal = Goal(model, alpha, branch, settings, linear_test_error(model, seed=settings.seed))
    memory = Memory()
    solution, _ = yield from find(goal, start, memory, hasty=branch in BRANCHES)
    if solution.message.startswith(Outcome.NOT_FINITE.message):
        return solution  # it is not the start that is to blame
    lost = not solution.matches_branch
    left_rough = solution.log2_points < (settings.log2_points or MIN_LOG2_POINTS)
    if branch in BRANCHES and (lost or left_rough or solution.stability.kind == "saddle"):
        # A saddle may be a weak look-alike of a minimum that its own start has missed.
        known = yield from _from_afar(goal, memory, minimum=not lost)
        if known is None and left_rough and not lost:
            known, _ = yield from find(goal, start, Memory())
        solution = known or solution
    solution = yield from _with_seeds(goal, solution)
    return replace(solution, seconds=time.perf_counter() - began)


def _with_seeds(goal: Goal, solution: Solution) -> Steps[Solution]:
    """The solution, asked again with other seeds where one does not determine it.

    Where there is no such branch, until the majority is known.
    """
    if not needs_seeds(solution):
        return solution
    others: list[Solution] = []
    start = solution.overlaps if solution.on_branch else BRANCHES[goal.branch].start(goal.model)
    for number in range(1, OTHERS + 1):
        if decided_against(solution, others):
            break
        settings = replace(
            goal.settings,
            log2_points=solution.log2_points,
            seed=goal.settings.seed + number * APART,
        )
        other, _ = yield from find(replace(goal, settings=settings), start, Memory())
        others.append(other)
    return combined(solution, others)


def _from_afar(goal: Goal, memory: Memory, *, minimum: bool) -> Steps[Solution | None]:
    """Walk to a point from where its branch is easier to find; None if it is lost on the way.

    Where a `minimum` is wanted, anything else is none: where the branch is a saddle from the
    beginning, as with two columns and one mechanism, there is none to follow.
    """
    alpha, branch = goal.alpha, goal.branch
    far = alpha / REACH if BRANCHES[branch].from_few else alpha * REACH
    few = COARSE if minimum else MIN_LOG2_POINTS + 1
    usual = goal.settings.iteration_on(few)
    # On the way the noise is near enough: only the last point must be precise.
    rough = replace(
        usual, tolerance=max(usual.tolerance, usual.floor), limit=min(usual.limit, ON_THE_WAY)
    )
    settings = replace(goal.settings, log2_points=few, iteration=rough)
    path = Follower(goal.model, branch, settings)
    solution = yield from path.at(far)
    if minimum and solution.stability.kind == "saddle":
        return None
    for step in np.geomspace(far, alpha, STEPS)[1:]:
        if not solution.on_branch:
            return None
        solution, path = yield from path.ahead(float(step))
    if not solution.on_branch:
        return None
    if minimum and solution.stability.kind == "saddle":
        return None
    solution, _ = yield from find(goal, solution.overlaps, memory.for_another(), path.jacobian)
    wanted = solution.on_branch and (not minimum or solution.stability.kind == "minimum")
    return solution if wanted else None


def find(
    goal: Goal,
    start: Overlaps,
    memory: Memory,
    jacobian: Jacobian | None = None,
    *,
    careful: bool = True,
    hasty: bool = False,
) -> Steps[tuple[Solution, Jacobian | None]]:
    """The fixed point of a branch as a `Solution`, and the derivatives there.

    Parameters
    ----------
    start : Overlaps
        In the basin of the branch; with a `jacobian`, close to the fixed point.
    memory : Memory
        Where the proximal maps start, and are left.
    careful : bool
        Whether to look again with short damped steps where the branch was not found, and to
        work out precisely what was found instead.
    hasty : bool
        Whether to leave a point rough that is hardly determined on few points.
    """
    began = time.perf_counter()
    settings = goal.settings
    problem = Free.started(goal.model, goal.alpha, start)
    search = Search(problem, settings, memory)
    x = problem.coordinates.pack(start)
    level = settings.log2_points or MIN_LOG2_POINTS
    coarse, most = min(COARSE, level), settings.max_log2_points

    def astray(point: FixedPoint) -> bool:
        return not belongs(goal.branch, classify(goal.model, problem.overlaps(point.x)))

    point = None
    working = jacobian
    if working is not None:
        point, working = yield from refine(search, x, level, working)
        if not point.outcome.success or astray(point):
            point = None
        elif search.count > 4:
            jacobian = None  # the neighbour's Jacobian is out of date
    if point is None:
        rough = replace(settings.iteration_on(coarse), tolerance=1e-3, floor=1e-2)
        point = yield from settle(search, x, coarse, rough)
        if point.outcome is Outcome.NOT_FINITE:
            here = yield from search.evaluate(point.x, coarse)
            return _dress(goal, point, here, None, None, Multipliers(), search, began), None
        for size, share in OTHER_STARTS:
            if point.outcome is not Outcome.LEFT_DOMAIN:
                break
            # The first steps went out of bounds: weights too small, or a response too large.
            x = problem.coordinates.pack(_rescaled(start, size, share))
            point = yield from settle(search, x, coarse, rough)
        if careful and astray(point):
            # Acceleration may have hopped; short damped steps show whether the branch is there.
            slow = replace(rough, memory=0, step=0.2, limit=150)
            again = yield from iterate(search, x, coarse, slow)
            point = again if again.outcome.success else point
        if astray(point) and (settings.log2_points is None or not careful):
            level = coarse  # what is there instead need not be precise
        cleared = _without_traces(problem, point)
        if cleared is not None:
            problem, x = cleared
            search = Search(problem, settings, Memory(), search.count)
            point = replace(point, x=x)
        working = yield from differentiate(search, point.x, coarse)
        jacobian = None
        if (
            point.outcome.success
            and coarse < level < settings.max_log2_points
            and working is not None
        ):
            here = yield from search.evaluate(point.x, coarse)
            jacobian = working if _jump_share(here) < FEW_JUMPS else None
            if settings.log2_points is None:
                error = _error(here, working)
                level = max(level, _enough(error, coarse, settings))
                if hasty and UNDETERMINED < error < math.inf:
                    level = most = coarse
            x = point.x
            if level > coarse:
                x = yield from closer(search, x, level - 2, working)
        else:
            x = point.x
        point, working = yield from refine_or_iterate(search, x, level, working)

    while point.outcome.success:
        nothing = is_nothing(problem.overlaps(point.x), goal.model)
        if jacobian is None and not nothing:
            # Errors are as good as the Jacobian behind them, and jumps make noise in
            # differences: it is measured on almost as many points as the result.
            jacobian = yield from differentiate(
                search, point.x, max(level - 2, min(level, MIN_LOG2_POINTS))
            )
        here = yield from search.evaluate(point.x, level)
        if settings.log2_points is not None or level >= settings.max_log2_points or level == coarse:
            break
        wanted = _enough(_error(here, jacobian), level, settings)
        if wanted <= level:
            break
        level = wanted
        point, working = yield from refine_or_iterate(search, point.x, level, jacobian or working)
        if level > MIN_LOG2_POINTS + 2 and _jump_share(here) >= FEW_JUMPS:
            jacobian = None

    here = yield from search.evaluate(point.x, level)
    responses, found = None, Multipliers()
    if point.outcome.success and math.isfinite(here.train_loss):
        responses = yield from here.responses()
        if not np.isfinite(responses.jacobian).all() and search.blame(here):
            responses = None
    if responses is not None:
        whole = yield from whole_jacobian(search, here, jacobian, responses)
        jacobian = _sharper(jacobian, whole)
        found = multipliers(problem, here.x, whole)
        while found.kind == "marginal" and settings.log2_points is None and level < most:
            # Minimum or saddle: more points may tell.
            level = min(level + 2, most)
            finer = yield from search.evaluate(point.x, level)
            whole = yield from whole_jacobian(
                search, finer, jacobian, (yield from finer.responses())
            )
            found = multipliers(problem, finer.x, whole)
    return _dress(goal, point, here, jacobian, responses, found, search, began), jacobian


def _without_traces(problem: Free, point: FixedPoint) -> tuple[Free, Vector] | None:
    """A problem and a point without the traces of overlaps that are dying out; None without any.

    They would take long to die, and their noise keeps Newton's steps from settling. They are
    zero where a symmetry of the model then keeps them there.
    """
    model, coordinates, found = problem.model, problem.coordinates, None
    x = point.x
    aligned = dict(zip(("theta", "m"), alignment(model, problem.overlaps(x)), strict=True))
    for name, share in aligned.items():
        part = coordinates.part(name)
        old = float(x[part] @ x[part])
        if old == 0 or share > TRACE or float(x[part] @ point.image[part]) > DYING * old:
            continue
        zero = np.where(part, 0.0, x)
        without = Free.started(model, problem.alpha, problem.overlaps(zero))
        if without.held[part].all():
            problem, x = found = without, zero
    return found


def _sharper(
    jacobian: Jacobian | None, whole: Float[np.ndarray, "scrambles n n"]
) -> Jacobian | None:
    """The Jacobian with the columns that are known without differences."""
    if jacobian is None:
        return None
    free = jacobian.free
    matrix = np.mean(whole, axis=0)[np.ix_(free, free)]
    return Jacobian.of(free, matrix, jacobian.test) or jacobian


def _enough(error: float, log2_points: int, settings: SolverSettings) -> int:
    """log2 of the points on which the largest relative error will meet the tolerance; at most four
    more than now, because errors from few points are rough."""
    excess = MARGIN * error / settings.rtol
    more = math.ceil(math.log2(min(max(excess, 1e-6), 1e6)) / RATE)
    return min(log2_points + min(more, 4), settings.max_log2_points)


def _error(here: Evaluation, jacobian: Jacobian | None) -> float:
    """The largest relative standard error of what is found at a point."""
    return worst_error(here, standard_errors(scramble_values(here, jacobian)))


def _jump_share(here: Evaluation) -> float:
    """Share of the points at which the proximal map has a second minimum to jump to."""
    return float(np.mean([np.mean(np.asarray(track.rival)) for track in here.answer.tracks]))


def _rescaled(start: Overlaps, size: float, share: float) -> Overlaps:
    """A start with weights Q larger by `size`, and V times `share`."""
    q, m, V, theta = (np.asarray(part) for part in start)
    return Overlaps(q=size**2 * q, m=size * m, V=share * V, theta=size * theta)


def _dress(
    goal: Goal,
    point: FixedPoint,
    here: Evaluation,
    jacobian: Jacobian | None,
    responses: Responses | None,
    found: Multipliers,
    search: Search,
    began: float,
) -> Solution:
    """The solution at a point whose averages are known, and its responses if it converged."""
    settings = goal.settings
    samples = scramble_values(here, jacobian)
    errors = standard_errors(samples)
    message = point.outcome.message
    if responses is None:
        stability = Stability(math.nan, math.nan, False, "the iteration did not converge")
        broken = dict.fromkeys(LAWS, math.nan)
        if search.broken is not None and search.blamed is None:
            search.blamed = diagnose_averages(search.broken) or unknown_cause(goal.model)
        if search.blamed is not None:
            message = f"{Outcome.NOT_FINITE.message}: {search.blamed}"
    else:
        given = (goal.model, goal.alpha, here.overlaps, here.mean, responses)
        broken = relative_errors(stiffness_lost(*given), explained(goal.model, here.overlaps))
        stability = judge(*given, found, broken)
        worst = worst_error(here, errors)
        if worst > settings.rtol and settings.log2_points is None:
            message += (
                f", but the quadrature error {worst:.1e} is above rtol = {settings.rtol:g} "
                f"on 2^{here.log2_points} points"
            )
    return Solution(
        model=goal.model,
        alpha=goal.alpha,
        branch=goal.branch,
        found=classify(goal.model, here.overlaps),
        overlaps=Overlaps(*(np.asarray(part) for part in here.overlaps)),
        train_loss=here.train_loss,
        free_energy=here.free_energy,
        test_error=here.test_error,
        linear_test_error=goal.linear,
        residual=point.residual,
        iterations=search.count,
        converged=responses is not None,
        message=message,
        stderr=errors,
        model_error=model_errors(here.overlaps, here.train_loss, here.test_error, broken),
        samples=samples,
        loss_slope=float(here.mean.moreau),
        stability=stability,
        log2_points=here.log2_points,
        seed=settings.seed,
        seconds=time.perf_counter() - began,
    )
