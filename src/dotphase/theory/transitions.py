"""How transitions are found: a survey of all branches on few points, then each change of the lowest
minimum by itself, on many.

A change from one branch to another is one of three things. The losses of two minima cross. Or the
first stops being a minimum where the second grows out of it, continuously: its largest multiplier
passes one there. Or one of the two ends, or begins, on the other's side of the crossing, and the
lowest minimum jumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from dotphase.config.formatting import format_with_model_error
from dotphase.config.serialization import fields_except
from dotphase.model import Model
from dotphase.numerics.crossings import straight_root
from dotphase.theory.branches import BRANCHES
from dotphase.theory.continuation import BranchContinuation, continue_branch
from dotphase.theory.quadrature_error import standard_error
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.spinodal import multiplier_root
from dotphase.theory.stability import UNDECIDED

#: An alpha of the survey, and the factor between its neighbours.
FIRST, FACTOR = 1.0, 1.25
#: Ends of the range that are closer than this share to a point of the survey are left out.
CLOSE = 0.02
#: Relative difference of the losses below which two branches that one can grow into are one.
SAME = 1e-3
#: Relative width at which a change that is no crossing is not divided any further.
NARROW = 0.03
#: Alphas of the survey at which a change is looked for again on more points.
TRIES = 3
#: Newton steps stop when alpha moves by less than this share of itself.
SETTLED = 1e-5

#: What happens at a transition, in words.
KINDS = {
    "crossing": "the losses cross",
    "continuous": "one grows out of the other",
    "jump": "one of them ends",
}


@dataclass(frozen=True)
class Transition:
    """A change of the lowest minimum along alpha.

    Attributes
    ----------
    alpha, stderr : where, and its standard error
    before, after : names of the lowest minima below and above
    kind : ``crossing`` of the losses, ``continuous``, or ``jump`` where one of the two ends
    model_error : how far breaking replica symmetry would move it; NaN where that is not estimated
    trusted, reason : whether the theory can be trusted on both sides, and why not
    sides : the solutions on both sides; at a crossing those at `alpha`

    Examples
    --------
    >>> found = dp.critical(dp.positional_semantic(), alpha_min=0.8, alpha_max=2.0, log2_points=12)
    >>> [(one.before, one.after, one.kind) for one in found.transitions]
    [('positional', 'semantic', 'crossing')]
    """

    alpha: float
    stderr: float
    before: str
    after: str
    kind: str
    model_error: float
    trusted: bool
    reason: str
    sides: tuple[Solution, Solution] = field(repr=False)

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and strings, ready for JSON."""
        return fields_except(self, "sides")

    def __str__(self) -> str:
        place = format_with_model_error(self.alpha, self.stderr, self.model_error)
        doubt = "" if self.trusted else " ?"
        return f"{self.before} -> {self.after} at alpha = {place}{doubt} ({KINDS[self.kind]})"


@dataclass(frozen=True)
class Survey:
    """All branches on a grid of alpha.

    Attributes
    ----------
    alphas : increasing
    solved : for each branch its solutions
    """

    alphas: tuple[float, ...]
    solved: dict[str, list[Solution]]

    def fate(self, name: str) -> str:
        """What a branch is in all of the range: ``not found``, ``a saddle`` or ``a minimum``."""
        row = [solution for solution in self.solved[name] if solution.on_branch]
        if not row:
            return "not found"
        return "a minimum" if any(solution.is_minimum for solution in row) else "a saddle"

    @property
    def lowest(self) -> list[Solution]:
        """The lowest minimum at every alpha that has one."""
        columns = zip(*self.solved.values(), strict=True)
        return [best for column in columns if (best := lowest_minimum(column)) is not None]


def candidates(model: Model) -> list[str]:
    """Branches that can be minima: the mixed one is for students of rank two or more."""
    single = model.student_rank == 1
    return [name for name in BRANCHES if not (single and not BRANCHES[name].vanishing)]


def survey(model: Model, alpha_min: float, alpha_max: float, settings: SolverSettings) -> Survey:
    """Every branch between two alphas."""
    low, high = (math.log(end / FIRST) / math.log(FACTOR) for end in (alpha_min, alpha_max))
    inside = [FIRST * FACTOR**k for k in range(math.ceil(low), math.floor(high) + 1)]
    ends = [
        end
        for end in (alpha_min, alpha_max)
        if all(abs(end / alpha - 1) > CLOSE for alpha in inside)
    ]
    alphas = sorted({*inside, *ends})
    solved = {}
    for name in candidates(model):
        solved[name] = continue_branch(model, alphas, name, settings, seed_ensemble=False)
    return Survey(tuple(alphas), solved)


def lowest_minimum(column: Sequence[Solution]) -> Solution | None:
    """The lowest minimum at one alpha; None if there is none.

    Where a branch has just grown out of another one they cannot be told apart by their losses, and
    the one with more overlaps that vanish is meant.
    """
    minima = [solution for solution in column if solution.is_minimum]
    distinct = [one for one in minima if not any(_merged(one, other) for other in minima)]
    return min(distinct, key=lambda solution: solution.free_energy, default=None)


def _merged(one: Solution, other: Solution) -> bool:
    """Whether a solution cannot be told from another one on which more overlaps vanish."""
    simpler = BRANCHES[other.branch].vanishing > BRANCHES[one.branch].vanishing
    return simpler and other.free_energy <= one.free_energy * (1 + SAME)


class Pair:
    """Two branches at one alpha after another, on the same points."""

    def __init__(self, model: Model, names: tuple[str, str], settings: SolverSettings) -> None:
        self.first, self.second = (BranchContinuation(model, name, settings) for name in names)

    def solve_at(self, alpha: float) -> tuple[Solution, Solution]:
        """Both solutions."""
        first = self.first.solve_at(alpha)
        second = self.second.solve_at(alpha)
        return first, second


def _gap(first: Solution, second: Solution) -> float:
    """Second minus first training loss, infinite where one of them does not count: positive where
    the second is no minimum, negative where the first is none; NaN where neither is."""
    best = lowest_minimum((first, second))
    if best is None:
        return math.nan
    gap = second.free_energy - first.free_energy
    both = first.is_minimum and second.is_minimum
    if both and not _merged(first, second) and not _merged(second, first):
        return gap
    return math.inf if best is first else -math.inf


def transitions(
    model: Model, found: Survey, walking: SolverSettings, settings: SolverSettings
) -> list[Transition]:
    """Every change of the lowest minimum that more points confirm.

    With `walking` on the way and for changes that are no crossings, `settings` for the place.
    """
    changes = []
    for (first, below), (second, above) in pairwise(_runs(found.lowest)):
        change = _change(model, (first, second), below[::-1], above, walking, settings)
        changes += [change] if change else []
    return changes


def _runs(lowest: Sequence[Solution]) -> list[tuple[str, list[float]]]:
    """Names of the lowest minima in their order, each with the alphas at which it is that."""
    runs: list[tuple[str, list[float]]] = []
    for solution in lowest:
        if not runs or runs[-1][0] != solution.branch:
            runs.append((solution.branch, []))
        runs[-1][1].append(solution.alpha)
    return runs


def _change(
    model: Model,
    names: tuple[str, str],
    below: Sequence[float],
    above: Sequence[float],
    walking: SolverSettings,
    settings: SolverSettings,
) -> Transition | None:
    """The change from one branch to another; None if more points do not confirm it.

    Parameters
    ----------
    below, above : sequences of float
        Where the survey has the first and the second as the lowest minimum, the closest first.
    """
    low = _confirmed(Pair(model, names, walking), below, 1)
    high = _confirmed(Pair(model, names, walking), above, -1)
    if low is None or high is None:
        return None
    narrow = _narrowed(Pair(model, names, walking), low, high)
    if all(math.isfinite(_gap(*pair)) for pair in narrow):
        crossing = _crossing(Pair(model, names, settings), *narrow)
        if crossing is not None:
            return crossing
    elif high[0].on_branch and _leads(narrow[1][0], names[1]):
        root, error = multiplier_root(model, low[0], high[0], settings)
        return _transition(root, error, "continuous", (narrow[0][0], narrow[1][1]))
    ends = [pair[0].alpha for pair in narrow]
    middle, width = (ends[0] + ends[1]) / 2, ends[1] - ends[0]
    return _transition(middle, width / 2, "jump", (narrow[0][0], narrow[1][1]))


def _leads(saddle: Solution, name: str) -> bool:
    """Whether a branch can grow out of a point: overlaps that vanish there are present on it."""
    return BRANCHES[saddle.branch].vanishing > BRANCHES[name].vanishing


def _confirmed(pair: Pair, alphas: Sequence[float], sign: int) -> tuple[Solution, Solution] | None:
    """The first of some alphas at which the gap of a pair has a sign."""
    for alpha in alphas[:TRIES]:
        both = pair.solve_at(alpha)
        if sign * _gap(*both) > 0:
            return both
    return None


def _narrowed(
    pair: Pair, below: tuple[Solution, Solution], above: tuple[Solution, Solution]
) -> tuple[tuple[Solution, Solution], tuple[Solution, Solution]]:
    """Alphas closer to a change, until it is a crossing or they are next to each other."""
    while above[0].alpha / below[0].alpha - 1 > NARROW:
        if math.isfinite(_gap(*below)) and math.isfinite(_gap(*above)):
            break
        middle = pair.solve_at(math.sqrt(below[0].alpha * above[0].alpha))
        gap = _gap(*middle)
        if math.isnan(gap):
            break  # neither is a minimum there: the first has lost its stability just before
        below, above = (middle, above) if gap > 0 else (below, middle)
    return below, above


def _crossing(
    exact: Pair, below: tuple[Solution, Solution], above: tuple[Solution, Solution]
) -> Transition | None:
    """Where two losses are equal, by Newton's steps: their slopes in alpha are known exactly.

    None where one of the two turns out to be no minimum next to it.
    """
    low, high = below[0].alpha, above[0].alpha
    place = straight_root(low, _gap(*below), high, _gap(*above))
    first, second = exact.solve_at(place)
    for _ in range(8):
        if not (first.is_minimum and second.is_minimum):
            return None
        slope = second.loss_slope - first.loss_slope
        step = (first.free_energy - second.free_energy) / slope
        if abs(step) < SETTLED * place:
            break
        # The bracket is from few points: the crossing may lie just outside it.
        place = min(max(place + step, low / FACTOR), high * FACTOR)
        first, second = exact.solve_at(place)
    difference = second.samples["train_loss"] - first.samples["train_loss"]
    breaking = max(one.model_error["train_loss"] for one in (first, second))
    error = standard_error(difference) / abs(slope)
    found = _transition(place, error, "crossing", (first, second))
    return replace(found, model_error=breaking / abs(slope))


def _transition(
    alpha: float, stderr: float, kind: str, sides: tuple[Solution, Solution]
) -> Transition:
    # Next to a continuous transition both are all but marginal: that is no reason for doubt.
    allowed = UNDECIDED if kind == "continuous" else "-"
    doubts = [
        f"{one.found}: {doubt}"
        for one in sides
        for doubt in one.stability.doubts
        if not doubt.startswith(allowed)
    ]
    below, above = sides[0].alpha, sides[1].alpha
    if above > FACTOR**2 * below:
        doubts.append(
            f"neither is seen to be a minimum between alpha = {below:.4g} and {above:.4g}"
        )
    reason = "; ".join(doubts) or f"both branches can be trusted at alpha = {alpha:.4g}"
    names = sides[0].branch, sides[1].branch
    return Transition(alpha, stderr, *names, kind, math.nan, not doubts, reason, sides)


def beats_linear(
    model: Model,
    found: Survey,
    changes: Sequence[Transition],
    linear: float,
    settings: SolverSettings,
) -> tuple[float, float, str]:
    """Where the test error of the lowest minimum falls below that of the linear layer for the last
    time, the standard error of that, and words."""
    if not math.isfinite(linear):
        return math.nan, math.nan, "there is no linear layer to compare with"
    lowest = found.lowest
    if not lowest:
        return math.nan, math.nan, "there is no minimum to compare with the linear layer"
    above = [solution.test_error > linear for solution in lowest]
    falls = [k for k, (before, after) in enumerate(pairwise(above)) if before and not after]
    if not falls:
        words = f"below that of the linear layer already at alpha = {lowest[0].alpha:.4g}"
        if any(above):
            words = f"above that of the linear layer up to alpha = {lowest[-1].alpha:.4g}"
        words = f"the test error of the lowest minimum is {words}"
        return math.nan, math.nan, words
    low, high = lowest[falls[-1]], lowest[falls[-1] + 1]
    ends = (low.alpha, high.alpha)
    passed = [one for one in changes if ends[0] <= one.alpha <= ends[1]]
    if passed:
        change = passed[-1]
        first, second = (one.test_error for one in change.sides)
        places = [one.alpha for one in change.sides]
        if first > linear >= second:
            words = f"the test error falls below that of the linear layer there: {change}"
            return change.alpha, max(change.stderr, (places[1] - places[0]) / 2), words
        before = first <= linear
        ends = (ends[0], places[0]) if before else (places[1], ends[1])
        name = change.before if before else change.after
    else:
        name = high.branch
    place, error = _passing(BranchContinuation(model, name, settings), ends, linear)
    return place, error, f"the {name} branch beats the linear layer"


def _passing(
    continuation: BranchContinuation, ends: tuple[float, float], linear: float
) -> tuple[float, float]:
    """Where the test error of a branch falls through a level between two alphas."""
    below = continuation.solve_at(ends[1])
    above = continuation.solve_at(ends[0])
    if not (below.on_branch and above.on_branch):
        return math.nan, math.nan
    # Newton steps on a smooth, almost straight curve that falls. Its slope is taken from points
    # well apart: close ones differ by the tolerance of the solver as much as by their alpha.
    before, here = below, above
    slope = (below.test_error - above.test_error) / (below.alpha - above.alpha)
    for _ in range(8):
        step = (linear - here.test_error) / slope
        if abs(step) < 10 * SETTLED * here.alpha:
            break
        before, here = here, (continuation.solve_at(here.alpha + step))
        if not here.on_branch:
            return math.nan, math.nan
        if abs(here.alpha - before.alpha) > 0.02 * here.alpha:
            rise = (here.test_error - before.test_error) / (here.alpha - before.alpha)
            slope = min(slope / 2, rise)
    place = here.alpha + (linear - here.test_error) / slope
    return place, here.stderr["test_error"] / abs(slope)


def outer_limit(name: str, alpha_min: float, alpha_max: float) -> float:
    """The end of the range towards which a branch is narrow."""
    upwards = BRANCHES[name].continue_upwards or BRANCHES[name].vanishing == {"m", "theta"}
    return alpha_max if upwards else alpha_min


def nearest_minimum(found: Survey, name: str, towards: float) -> float | None:
    """The alpha of the survey next to an end of the range where a branch is clearly a minimum."""
    clear = [s.alpha for s in found.solved[name] if s.is_minimum and s.stability.kind == "minimum"]
    alphas = np.array(clear)
    return None if alphas.size == 0 else float(alphas[np.argmin(np.abs(np.log(alphas / towards)))])
