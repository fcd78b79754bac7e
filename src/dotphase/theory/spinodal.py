"""Where a branch stops being a minimum, where it ends (its spinodal) and where trust does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Unpack

import numpy as np

from dotphase.config import validation
from dotphase.model import Model
from dotphase.numerics.statistics import mean_and_error
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.branches import BRANCHES
from dotphase.theory.continuation import BranchContinuation
from dotphase.theory.driver import run_quietly
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution

#: How precisely to solve where nothing else is said.
SETTINGS = SolverSettings(log2_points=15)
#: Factor between the alphas at which a branch is looked at on the way to its limits.
STRIDE = 1.15
#: Relative width at which the bisection of an end stops, and the seeds it is repeated with.
END_WIDTH, SEEDS = 0.01, 3
#: Most steps towards the alpha at which stability is lost; they end when one is shorter than this
#: share of its error.
ROOT_STEPS, SETTLED = 6, 0.5


@dataclass(frozen=True)
class BranchEnd:
    """Where a branch stops existing, or stops being trusted.

    Attributes
    ----------
    branch : its name
    inside, outside : alphas next to each other with and without the property
    alpha : the middle between them
    width : half their distance, the uncertainty of `alpha`

    Examples
    --------
    >>> end = dp.analysis.branch_end(
    ...     dp.positional_semantic(), "semantic", 1.2, 0.4, accuracy=0.3, log2_points=12
    ... )
    >>> end.alpha > 0.4
    True
    """

    branch: str
    inside: float
    outside: float

    @property
    def alpha(self) -> float:
        return (self.inside + self.outside) / 2

    @property
    def width(self) -> float:
        return abs(self.inside - self.outside) / 2


@dataclass(frozen=True)
class Limits:
    """Where a branch stops being a minimum, and where it ends.

    Both are looked for where a branch has its narrow side: the positional one towards more
    sentences, the others towards fewer. NaN where there is no such place in the range.

    Attributes
    ----------
    stability_loss, stability_loss_stderr : where its largest multiplier passes one
    end, end_stderr : where no fixed point is found any longer
    """

    stability_loss: float = math.nan
    stability_loss_stderr: float = math.nan
    end: float = math.nan
    end_stderr: float = math.nan


def limits_of(
    model: Model,
    branch: str,
    inside: float,
    outside: float,
    settings: SolverSettings,
    finer: SolverSettings,
) -> Limits:
    """The limits of a branch between an alpha where it is a minimum and another one.

    The place where stability is lost is the root of the largest multiplier minus one, and its
    error that of the multiplier over its slope. The end is a bisection with each of `SEEDS`
    seeds: next to it the quadrature decides whether there is a fixed point.

    Parameters
    ----------
    settings, finer : SolverSettings
        On the way, and for the place where stability is lost.
    """
    count = max(2, math.ceil(abs(math.log(outside / inside)) / math.log(STRIDE)) + 1)
    continuation = BranchContinuation(model, branch, settings)
    passed: list[Solution] = []
    solution = continuation.solve_at(inside)
    if not solution.on_branch:
        return Limits()
    passed.append(solution)
    for alpha in np.geomspace(inside, outside, count)[1:]:
        solution, continuation = continuation.trial_step(float(alpha))
        if not solution.on_branch:
            break
        passed.append(solution)
    loss = math.nan, math.nan
    for before, after in pairwise(passed):
        if _excess(before)[0] < 0 <= _excess(after)[0]:
            loss = multiplier_root(model, before, after, finer)
            break
    end = math.nan, math.nan
    if len(passed) < count:
        last, first = passed[-1].alpha, float(alpha)
        places, there = [], attrgetter("on_branch")
        for number in range(SEEDS):
            some = replace(settings, seed=settings.seed + number)
            place = _bisection(model, branch, last, first, END_WIDTH, some, there)
            places.append(place.alpha)
        mean, spread = mean_and_error(places)
        end = mean, math.hypot(spread, place.width)
    return Limits(*loss, *end)


def _excess(solution: Solution) -> tuple[float, float]:
    """The largest multiplier minus one, and its standard error."""
    verdict = solution.stability
    name = max(verdict.multipliers, key=lambda key: verdict.multipliers[key], default=None)
    if name is None:
        return math.nan, math.nan
    return verdict.multipliers[name] - 1, verdict.multipliers_stderr[name]


def multiplier_root(
    model: Model, before: Solution, after: Solution, settings: SolverSettings
) -> tuple[float, float]:
    """Where the largest multiplier is one between two solutions of a branch, and its error.

    The slope is that between the two, which are well apart; steps on more points follow.
    """
    low, high = sorted((before.alpha, after.alpha))
    rise = _excess(after)[0] - _excess(before)[0]
    slope = rise / (after.alpha - before.alpha)
    root = before.alpha - _excess(before)[0] / slope
    error = max(_excess(before)[1], _excess(after)[1])
    continuation = BranchContinuation(model, before.branch, settings)
    continuation.solve_at(before.alpha)
    for _ in range(ROOT_STEPS):
        solution = continuation.solve_at(root)
        if not solution.on_branch:
            break
        excess, error = _excess(solution)
        last, root = root, min(max(root - excess / slope, low), high)
        if abs(root - last) < SETTLED * error / abs(slope):
            break
    return root, error / abs(slope)


def _bisection(
    model: Model,
    branch: str,
    good: float,
    bad: float,
    accuracy: float,
    settings: SolverSettings,
    holds: Callable[[Solution], bool],
) -> BranchEnd:
    """Where something ceases to hold between two alphas."""
    continuation = BranchContinuation(model, branch, settings)
    if not (continuation.solve_at(good)).on_branch:
        bad = good  # next to an end these points may have none any more
    while abs(good - bad) > accuracy * good:
        middle = (good + bad) / 2
        solution, other = continuation.trial_step(middle)
        if holds(solution):
            good, continuation = middle, other
        else:
            bad = middle
    return BranchEnd(branch, good, bad)


@in_double_precision
def branch_end(
    model: Model,
    branch: str,
    inside: float,
    outside: float,
    *,
    trusted: bool = False,
    accuracy: float = 0.01,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> BranchEnd | None:
    """The end of a branch (its spinodal), or of the trust in it, between two alphas.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    branch : str
        Which branch.
    inside, outside : float
        An alpha at which the branch exists (or is trusted), and one towards which to look.
    trusted : bool
        Look for the end of trust instead: replicon reaching one, or the onset of jumps.
    accuracy : float
        Relative width at which the bisection stops.
    settings, **changes
        As for `dotphase.solve`; `log2_points` is 15 by default.

    Returns
    -------
    BranchEnd or None
        None if there is no end between the two.

    Examples
    --------
    >>> end = dp.analysis.branch_end(
    ...     dp.positional_semantic(), "semantic", 1.2, 0.4, accuracy=0.3, log2_points=12
    ... )
    >>> 0.4 < end.alpha < 1.2
    True
    """
    chosen = with_changes(settings, SETTINGS, changes)
    BRANCHES.check(branch)
    inside = validation.number("inside", inside, above=0)
    outside = validation.number("outside", outside, above=0)

    def holds(solution: Solution) -> bool:
        return solution.on_branch and (solution.stability.trusted or not trusted)

    def look() -> BranchEnd | None:
        good, bad = inside, outside
        continuation = BranchContinuation(model, branch, chosen)
        if not holds(continuation.solve_at(good)):
            return None
        # Towards the far end in steps that continuation can follow.
        for alpha in np.geomspace(inside, outside, 9)[1:]:
            if not holds(continuation.solve_at(float(alpha))):
                bad = float(alpha)
                break
            good = float(alpha)
        else:
            return None
        return _bisection(model, branch, good, bad, accuracy, chosen, holds)

    return run_quietly(look)
