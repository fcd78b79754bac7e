"""Spinodals and other ends of a branch: loss of stability, bifurcations, loss of trust.

A branch stops being a minimum where its largest multiplier passes one. It ceases to exist in one of
two ways. Either it merges with a simpler branch, on which one more overlap vanishes: there the
multiplier of that overlap on the simpler branch passes one. Or it merges with another fixed point
of its own kind at its spinodal, a fold in alpha (`dotphase.theory.arclength`). All of these are
points of continued branches, with quadrature standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Unpack

import numpy as np

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.numerics.crossings import Root, Sample, find_root, straight_root
from dotphase.numerics.statistics import mean_and_error
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.arclength import find_fold
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import alignments
from dotphase.theory.continuation import BranchContinuation
from dotphase.theory.driver import run_quietly
from dotphase.theory.seed_ensemble import SEED_STRIDE
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution

#: Default settings of `branch_end`.
SETTINGS = SolverSettings(log2_points=15)
#: Factor between neighboring alphas on the way to the end of a branch.
STRIDE = 1.15
#: Largest number of iterations of a point on that way; more of them precede a lost branch.
MAX_STEPS = 60
#: Largest number of solves for the root of a multiplier, and the fraction of its standard error at
#: which the search ends.
ROOT_STEPS, SETTLED = 6, 0.5
#: Relative change of alpha over which a multiplier is a straight line within its error.
STRAIGHT = 0.004
#: Number of seeds for the loss of stability.
ROOT_SEEDS = 3
#: Relative change of the squared alignment beyond a bifurcation, per stride, below which the branch
#: merges there instead of at a fold behind it.
MERGING = 0.5
#: Halvings of the bracket of the end of a branch before the search for a fold.
HALVINGS = 3
#: Relative width at which the search for the loss of trust ends.
TRUST_WIDTH = 0.01

#: Starts the continuation of a branch, by its name, near an alpha.
BranchStart = Callable[[str, float], BranchContinuation]


@dataclass(frozen=True, eq=False, repr=False)
class BranchEnd(Result):
    """End of a branch in alpha.

    Attributes
    ----------
    branch : name of the branch
    kind : ``fold``, ``merges with NAME``, ``lost`` (no fixed point is found beyond, and no fold
        either), or ``loss of trust``
    alpha, stderr : position and its standard error; half the bracket where the branch is lost

    Examples
    --------
    >>> end = dp.analysis.branch_end(
    ...     dp.positional_semantic(), "semantic", 1.2, 0.4, log2_points=12
    ... )
    >>> end.kind
    'merges with uninformed'
    """

    branch: str
    kind: str
    alpha: float
    stderr: float


@dataclass(frozen=True)
class Limits:
    """Range of alpha in which a branch is a minimum, and in which it exists.

    Both ends are on the side where the branch's basin is narrow: towards large alpha for the
    positional branch, towards small alpha for the others. NaN where there is no such end.

    Attributes
    ----------
    stability_loss, stability_loss_stderr : where the largest multiplier passes one
    end, end_stderr : where the branch ceases to exist
    end_kind : see `BranchEnd`; empty without an end
    """

    stability_loss: float = math.nan
    stability_loss_stderr: float = math.nan
    end: float = math.nan
    end_stderr: float = math.nan
    end_kind: str = ""


def branch_limits(
    start: BranchStart, branch: str, inside: float, outside: float, precise: SolverSettings
) -> Limits:
    """The limits of a branch between an alpha where it is a minimum and another alpha.

    Parameters
    ----------
    start : callable
        Starts the continuation of this and of simpler branches.
    precise : SolverSettings
        For the roots of multipliers.
    """
    path = _follow(start(branch, inside), inside, outside)
    if not path.solutions:
        return Limits()
    loss, end = _stability_loss(path, precise), _end_of(path, start, precise)
    return Limits(*loss) if end is None else Limits(*loss, end.alpha, end.stderr, end.kind)


@dataclass(frozen=True, eq=False)
class _Path:
    """Points of a branch up to where it is lost."""

    continuations: list[BranchContinuation]
    lost_at: float | None

    @property
    def solutions(self) -> list[Solution]:
        """The solutions at the points."""
        return [one.last.solution for one in self.continuations if one.last is not None]


def _follow(continuation: BranchContinuation, inside: float, outside: float) -> _Path:
    """Follow a branch from one alpha towards another until it is lost."""
    count = max(2, math.ceil(abs(math.log(outside / inside)) / math.log(STRIDE)) + 1)
    settings = continuation.settings
    iteration = settings.iteration_on(settings.initial_log2_points)
    limited = replace(iteration, max_steps=min(iteration.max_steps, MAX_STEPS))
    continuation = continuation.with_settings(replace(settings, iteration=limited))
    if not continuation.solve_at(inside).on_branch and continuation.approach(inside) is None:
        return _Path([], None)
    continuations = [continuation]
    for alpha in map(float, np.geomspace(inside, outside, count)[1:]):
        solution, advanced = continuations[-1].trial_step(alpha)
        if not solution.on_branch:
            return _Path(continuations, alpha)
        continuations.append(advanced)
    return _Path(continuations, None)


def _stability_loss(path: _Path, precise: SolverSettings) -> tuple[float, float]:
    """The first alpha along a branch where its largest multiplier passes one, and its error.

    NaN if there is none. The error of a multiplier is that at given overlaps. Near the end of a
    branch the overlaps themselves vary more between Gaussian points, so the root is found with
    several seeds.
    """
    for continuation, (before, after) in zip(
        path.continuations, pairwise(path.solutions), strict=False
    ):
        if _excess(before).value < 0 <= _excess(after).value:
            seeds = [precise.seed + number * SEED_STRIDE for number in range(ROOT_SEEDS)]
            settings = [replace(precise, seed=seed) for seed in seeds]
            roots = multiplier_roots(continuation, after, settings)
            mean, spread = mean_and_error([root.position for root in roots])
            return mean, max(spread, *(root.stderr / math.sqrt(len(roots)) for root in roots))
    return math.nan, math.nan


def multiplier_roots(
    before: BranchContinuation,
    after: Solution,
    settings: Sequence[SolverSettings],
    name: str | None = None,
) -> list[Root]:
    """Roots of a multiplier minus one between two points of a branch, one for each settings.

    The settings of the continuation come first; each search begins at the last root.

    Parameters
    ----------
    name : str, optional
        Overlap of the multiplier; the largest one by default.
    """
    assert before.last is not None
    ends = before.last.solution.alpha, after.alpha
    values = _excess(before.last.solution, name), _excess(after, name)
    slope = (values[1].value - values[0].value) / (ends[1] - ends[0])
    position = straight_root(ends[0], values[0].value, ends[1], values[1].value)
    root = Root(position, max(value.stderr for value in values) / abs(slope), slope)
    # The bracket comes from few points: the root may lie outside it.
    search = partial(
        find_root,
        bounds=(min(ends) / STRIDE, max(ends) * STRIDE),
        rtol=STRAIGHT,
        settled=SETTLED,
        max_steps=ROOT_STEPS,
    )

    def excess_at(continuation: BranchContinuation, alpha: float) -> Sample | None:
        solution = continuation.solve_at(alpha)
        return _excess(solution, name) if solution.on_branch else None

    roots = []
    for each in (before.settings, *settings):
        before = before.with_settings(each.on_the_way(each.initial_log2_points))
        root = search(partial(excess_at, before), root.position, root.slope) or root
        roots.append(root)
    return roots[1:]


def _excess(solution: Solution, name: str | None = None) -> Sample:
    """A multiplier minus one; the largest by default, NaN if none was measured."""
    multipliers = solution.stability.multipliers
    if name is None:
        name = max(multipliers, key=lambda key: multipliers[key], default="")
    if name not in multipliers:
        return Sample(math.nan, math.nan)
    return Sample(multipliers[name] - 1, solution.stability.multipliers_stderr[name])


def _end_of(path: _Path, start: BranchStart, precise: SolverSettings) -> BranchEnd | None:
    """The end of a branch on a path; None if there is none.

    Behind a bifurcation, few Gaussian points often have a spurious continuation of the branch, so
    bifurcations are searched for also where the branch was not lost.
    """
    branch = path.continuations[0].branch
    for parent in BRANCHES:
        added = BRANCHES[parent].vanishing - BRANCHES[branch].vanishing
        is_simpler = BRANCHES[parent].vanishing > BRANCHES[branch].vanishing
        if is_simpler and len(added) == 1 and BRANCHES[parent].variant_of is None:
            root = _bifurcation(path, start, parent, next(iter(added)), precise)
            if root is not None:
                return BranchEnd(branch, f"merges with {parent}", root.position, root.stderr)
    if path.lost_at is None:
        return None
    repeated = [path, *(_follow_again(path, number) for number in range(1, ROOT_SEEDS))]
    lost = [one for one in repeated if one.solutions and one.lost_at is not None]
    ends = sorted(map(_spinodal, lost), key=lambda end: end.alpha)
    middle = ends[len(ends) // 2]
    if len(ends) < 2:
        return middle
    # Jumping points move the end by more than the error from one seed.
    _, spread = mean_and_error([end.alpha for end in ends])
    return replace(middle, stderr=max(spread, middle.stderr))


def _follow_again(path: _Path, number: int) -> _Path:
    """The last part of a path with another seed."""
    assert path.lost_at is not None
    continuation = path.continuations[max(-3, -len(path.continuations))]
    assert continuation.last is not None
    near, settings = continuation.last.solution.alpha, continuation.settings
    reseeded = replace(settings, seed=settings.seed + number * SEED_STRIDE)
    return _follow(continuation.with_settings(reseeded), near, path.lost_at**2 / near)


def _spinodal(path: _Path) -> BranchEnd:
    """The spinodal (fold) at the end of a path, or the bracket of the end where none is found."""
    branch = path.continuations[0].branch
    last_alpha, lost_at, continuation = _narrow(path)
    width = abs(lost_at - last_alpha)
    fold = find_fold(continuation.arclength(lost_at - last_alpha), 2 * width / last_alpha)
    # Jumping points make small folds on the way: the branch exists beyond those.
    if fold is not None and abs(fold.alpha - lost_at) < 2 * width:
        return BranchEnd(branch, "fold", fold.alpha, max(fold.stderr, width / 4))
    return BranchEnd(branch, "lost", (lost_at + last_alpha) / 2, width / 2)


def _narrow(path: _Path) -> tuple[float, float, BranchContinuation]:
    """Halve the bracket of the end of a branch a few times.

    Returns the last alpha on the branch, the first beyond it, and the continuation at the former.
    """
    continuation, last_alpha = path.continuations[-1], path.solutions[-1].alpha
    lost_at = path.lost_at
    assert lost_at is not None
    for _ in range(HALVINGS):
        middle = (last_alpha + lost_at) / 2
        solution, advanced = continuation.trial_step(middle)
        if solution.on_branch:
            last_alpha, continuation = middle, advanced
        else:
            lost_at = middle
    return last_alpha, lost_at, continuation


def _bifurcation(
    path: _Path, start: BranchStart, parent: str, name: str, precise: SolverSettings
) -> Root | None:
    """Bifurcation of a branch from a simpler one; None if it exists on both sides.

    Parameters
    ----------
    parent, name : str
        The simpler branch, and the overlap that vanishes on it.
    """
    alphas = [solution.alpha for solution in path.solutions]
    alphas += [] if path.lost_at is None else [path.lost_at]
    continuation = start(parent, alphas[-1])
    # From the outside in: the first alpha at which the simpler branch is unstable bounds the root.
    for outside, inside in pairwise(alphas[::-1]):
        if not _merges(path.solutions, name, inside, outside):
            continue
        after, before = continuation.solve_at(outside), continuation.solve_at(inside)
        if not (before.on_branch and after.on_branch):
            return None
        if _excess(after, name).value < 0 <= _excess(before, name).value:
            return multiplier_roots(continuation, after, [precise], name)[0]
    return None


def _merges(solutions: Sequence[Solution], name: str, inside: float, outside: float) -> bool:
    """True if the square of an alignment vanishes at a bifurcation between two alphas."""
    squares = {one.alpha: alignments(one.model, one.overlaps)[name] ** 2 for one in solutions}
    return squares.get(outside, 0.0) < MERGING * squares.get(inside, 0.0)


@in_double_precision
def branch_end(
    model: Model,
    branch: str,
    inside: float,
    outside: float,
    *,
    trusted: bool = False,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> BranchEnd | None:
    """Find the end of a branch, or of the trust in it, between two alphas.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    branch : str
        Name of the branch.
    inside, outside : float
        An alpha at which the branch exists (or is trusted), and an alpha beyond its end.
    trusted : bool
        Find the loss of trust instead: replicon reaching one, or the onset of jumps.
    settings, **changes
        As for `dotphase.solve`; `log2_points` is 15 by default.

    Returns
    -------
    BranchEnd or None
        None if there is no end between the two, or no trust at `inside`.

    Examples
    --------
    >>> end = dp.analysis.branch_end(
    ...     dp.positional_semantic(), "semantic", 1.2, 0.4, log2_points=12
    ... )
    >>> 0.4 < end.alpha < 1.2
    True
    """
    chosen = with_changes(settings, SETTINGS, changes)
    BRANCHES.check(branch)
    inside = validation.number("inside", inside, above=0)
    outside = validation.number("outside", outside, above=0)

    def start(name: str, alpha: float) -> BranchContinuation:
        return BranchContinuation(model, name, chosen)

    def find() -> BranchEnd | None:
        if trusted:
            return _loss_of_trust(start(branch, inside), inside, outside)
        path = _follow(start(branch, inside), inside, outside)
        _check_inside(path, branch, inside, chosen)
        return _end_of(path, start, chosen)

    return run_quietly(find)


def _check_inside(path: _Path, branch: str, inside: float, settings: SolverSettings) -> None:
    if not path.solutions:
        points = f"2^{settings.initial_log2_points} points"
        rule = f"must be on the {branch} branch, which is not found there on {points}"
        raise InvalidInput("inside", inside, rule)


def _loss_of_trust(
    continuation: BranchContinuation, inside: float, outside: float
) -> BranchEnd | None:
    """Bisect for the alpha at which a branch stops being trusted; None if there is none."""
    path = _follow(continuation, inside, outside)
    _check_inside(path, continuation.branch, inside, continuation.settings)
    trust = [solution.stability.trusted for solution in path.solutions]
    if not trust[0] or (all(trust) and path.lost_at is None):
        return None
    alphas = [solution.alpha for solution in path.solutions] + [path.lost_at or outside]
    first = trust.index(False) if not all(trust) else len(trust)
    good, bad, last_trusted = alphas[first - 1], alphas[first], path.continuations[first - 1]
    while abs(good - bad) > TRUST_WIDTH * good:
        middle = (good + bad) / 2
        solution, advanced = last_trusted.trial_step(middle)
        if solution.on_branch and solution.stability.trusted:
            good, last_trusted = middle, advanced
        else:
            bad = middle
    return BranchEnd(continuation.branch, "loss of trust", (good + bad) / 2, abs(good - bad) / 2)
