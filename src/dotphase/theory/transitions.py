"""Transitions: the alphas at which the lowest minimum changes.

A survey of all branches on few points brackets every change; more points then locate it. A change
from one branch to another is one of three things. The losses of two minima cross. Or the second
grows continuously out of the first, whose largest multiplier passes one. Or one of the two ends on
the other's side of the crossing, and the lowest minimum jumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from dotphase.config.formatting import format_with_model_error
from dotphase.config.serialization import fields_except
from dotphase.numerics.crossings import Root, Sample, find_root, straight_root
from dotphase.storage.results import Result
from dotphase.theory.branch_survey import GRID_FACTOR, Survey, has_merged, lowest_minimum
from dotphase.theory.branches import BRANCHES
from dotphase.theory.continuation import BranchContinuation
from dotphase.theory.quadrature_error import standard_error
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.spinodal import multiplier_roots
from dotphase.theory.stability import UNDECIDED

#: Relative width at which the bracket of a change that is no crossing is narrow enough.
NARROW = 0.03
#: Number of survey alphas at which a change may be confirmed on more points.
TRIES = 3
#: Relative steps of alpha at which the searches for crossings of losses and of test errors end.
LOSS_RTOL, TEST_ERROR_RTOL = 1e-5, 1e-4
#: The same in standard errors of the crossing; the error that is left is of second order.
LOSS_SETTLED = 0.1

#: Descriptions of the kinds of transitions.
KINDS = {
    "crossing": "the losses cross",
    "continuous": "one grows out of the other",
    "jump": "one of them ends",
}


@dataclass(frozen=True, eq=False, repr=False)
class Transition(Result):
    """A change of the lowest minimum along alpha.

    Attributes
    ----------
    alpha, stderr : position and its standard error
    before, after : names of the lowest minima below and above
    kind : ``crossing`` of the losses, ``continuous``, or ``jump`` where one of the two ends
    model_error : shift by replica symmetry breaking; NaN where it is not estimated
    trusted, reason : whether the theory can be trusted on both sides, and why not
    sides : the solutions on both sides; at a crossing those at `alpha` within a part of its error

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
        position = format_with_model_error(self.alpha, self.stderr, self.model_error)
        doubt = "" if self.trusted else " ?"
        return f"{self.before} -> {self.after} at alpha = {position}{doubt} ({KINDS[self.kind]})"


#: Solutions of two branches at one alpha, on the same points.
Pair = tuple[Solution, Solution]


class PairContinuation:
    """Two branches followed together in alpha."""

    def __init__(self, first: BranchContinuation, second: BranchContinuation) -> None:
        self.first, self.second = first, second

    def with_settings(self, settings: SolverSettings) -> PairContinuation:
        """A copy at the same points with other settings."""
        return PairContinuation(
            self.first.with_settings(settings), self.second.with_settings(settings)
        )

    def solve_at(self, alpha: float) -> Pair:
        """Solve both branches."""
        return self.first.solve_at(alpha), self.second.solve_at(alpha)


def loss_gap(pair: Pair) -> float:
    """The second loss minus the first.

    Positive infinity where only the first is a minimum (or they have merged into it), negative
    infinity where only the second is, NaN where neither is.
    """
    first, second = pair
    lowest = lowest_minimum(pair)
    if lowest is None:
        return math.nan
    both = first.is_minimum and second.is_minimum
    if both and not has_merged(first, second) and not has_merged(second, first):
        return second.free_energy - first.free_energy
    return math.inf if lowest is first else -math.inf


def find_transitions(
    survey: Survey, coarse: SolverSettings, settings: SolverSettings
) -> list[Transition]:
    """All changes of the lowest minimum that more points confirm.

    Parameters
    ----------
    coarse, settings : SolverSettings
        For brackets and for changes that are no crossings, and for the final position.
    """
    changes = []
    for (first, below), (second, above) in pairwise(_runs(survey.lowest)):
        branches = (survey.continuation(name, below[-1], coarse) for name in (first, second))
        pair = PairContinuation(*branches)
        bracket = _bracket(pair, below[::-1], above)
        if bracket is not None:
            changes.append(_locate(pair, *bracket, settings))
    return changes


def _runs(lowest: Sequence[Solution]) -> list[tuple[str, list[float]]]:
    """Names of the lowest minima in order, with the alphas of each."""
    runs: list[tuple[str, list[float]]] = []
    for solution in lowest:
        if not runs or runs[-1][0] != solution.branch:
            runs.append((solution.branch, []))
        runs[-1][1].append(solution.alpha)
    return runs


def _bracket(
    pair: PairContinuation, below: Sequence[float], above: Sequence[float]
) -> tuple[tuple[Pair, Pair], tuple[Pair, Pair]] | None:
    """Pairs on both sides of a change: near it, and as confirmed; None if it is not confirmed.

    The near pairs are both minima, or next to each other.
    """
    low, high = _confirm(pair, below, 1), _confirm(pair, above, -1)
    if low is None or high is None:
        return None
    confirmed = low, high
    while high[0].alpha / low[0].alpha - 1 > NARROW:
        if math.isfinite(loss_gap(low)) and math.isfinite(loss_gap(high)):
            break
        middle = pair.solve_at(math.sqrt(low[0].alpha * high[0].alpha))
        gap = loss_gap(middle)
        if math.isnan(gap):
            break  # The first has lost its stability below the middle.
        low, high = (middle, high) if gap > 0 else (low, middle)
    return (low, high), confirmed


def _confirm(pair: PairContinuation, alphas: Sequence[float], sign: int) -> Pair | None:
    """The pair at the first alpha whose loss gap has this sign."""
    for alpha in alphas[:TRIES]:
        solutions = pair.solve_at(alpha)
        if sign * loss_gap(solutions) > 0:
            return solutions
    return None


def _locate(
    pair: PairContinuation,
    near: tuple[Pair, Pair],
    confirmed: tuple[Pair, Pair],
    settings: SolverSettings,
) -> Transition:
    """Locate a change between two pairs and name its kind."""
    (low, high), sides = near, (near[0][0], near[1][1])
    if all(math.isfinite(loss_gap(each)) for each in near):
        crossing = _crossing(pair, low, high, settings)
        if crossing is not None:
            return crossing
    elif confirmed[1][0].on_branch and _can_grow_out_of(high[0], high[1].branch):
        before, after = confirmed[0][0], confirmed[1][0]
        pair.first.solve_at(before.alpha)
        (root,) = multiplier_roots(pair.first, after, [settings])
        return _transition(root.position, root.stderr, "continuous", sides)
    middle = (low[0].alpha + high[0].alpha) / 2
    return _transition(middle, (high[0].alpha - low[0].alpha) / 2, "jump", sides)


def _can_grow_out_of(saddle: Solution, name: str) -> bool:
    """True if a branch has overlaps that vanish at a saddle, and all of the saddle's own."""
    return BRANCHES[saddle.branch].vanishing > BRANCHES[name].vanishing


def _crossing(
    coarse: PairContinuation, low: Pair, high: Pair, settings: SolverSettings
) -> Transition | None:
    """The crossing of two losses; None where one of the two is no minimum next to it.

    The slopes of the losses in alpha are exact, and the quadrature error mostly cancels in their
    difference.
    """
    pair = low

    def gap_at(continuation: PairContinuation, alpha: float) -> Sample | None:
        nonlocal pair
        pair = first, second = continuation.solve_at(alpha)
        if not (first.is_minimum and second.is_minimum):
            return None
        return Sample(
            value=second.free_energy - first.free_energy,
            stderr=standard_error(second.samples["train_loss"] - first.samples["train_loss"]),
            slope=second.loss_slope - first.loss_slope,
        )

    ends = low[0].alpha, high[0].alpha
    position = straight_root(ends[0], loss_gap(low), ends[1], loss_gap(high))
    # The bracket comes from few points: the crossing may lie outside it.
    bounds = ends[0] / GRID_FACTOR, ends[1] * GRID_FACTOR
    search = partial(find_root, slope=math.nan, bounds=bounds, rtol=LOSS_RTOL, settled=LOSS_SETTLED)
    guess = search(partial(gap_at, coarse), position)
    position = position if guess is None else guess.position
    root = search(partial(gap_at, coarse.with_settings(settings)), position)
    if root is None:
        return None
    loss_error = max(solution.model_error["train_loss"] for solution in pair)
    model_error = loss_error / abs(root.slope)
    return _transition(root.position, root.stderr, "crossing", pair, model_error)


def _transition(
    alpha: float, stderr: float, kind: str, sides: Pair, model_error: float = math.nan
) -> Transition:
    """Collect the doubts about both sides."""
    # Next to a continuous transition both sides are almost marginal: that is no doubt.
    expected = UNDECIDED if kind == "continuous" else None
    doubts = [
        f"{solution.found}: {doubt}"
        for solution in sides
        for doubt in solution.stability.doubts
        if expected is None or not doubt.startswith(expected)
    ]
    below, above = sides[0].alpha, sides[1].alpha
    if above > GRID_FACTOR**2 * below:
        doubts.append(f"neither is a minimum between alpha = {below:.4g} and {above:.4g}")
    reason = "; ".join(doubts) or f"both branches can be trusted at alpha = {alpha:.4g}"
    names = sides[0].branch, sides[1].branch
    return Transition(alpha, stderr, *names, kind, model_error, not doubts, reason, sides)


@dataclass(frozen=True)
class LinearCrossing:
    """The alpha at which the lowest minimum beats the linear layer, or why there is none."""

    alpha: float
    stderr: float
    message: str


def beats_linear(
    branches: Survey,
    changes: Sequence[Transition],
    linear: float,
    coarse: SolverSettings,
    settings: SolverSettings,
) -> LinearCrossing:
    """The last alpha at which the test error of the lowest minimum falls below the linear layer's.

    Parameters
    ----------
    linear : float
        Test error of the linear layer.
    coarse, settings : SolverSettings
        For the bracket and for the final position.
    """
    lowest = branches.lowest
    bracket = _linear_bracket(lowest, linear)
    if isinstance(bracket, str):
        return LinearCrossing(math.nan, math.nan, bracket)
    low, high = bracket
    ends, name = (low.alpha, high.alpha), high.branch
    between = [change for change in changes if ends[0] <= change.alpha <= ends[1]]
    if between:
        change = between[-1]
        before, after = change.sides
        if before.test_error > linear >= after.test_error:
            message = f"the test error falls below that of the linear layer there: {change}"
            stderr = max(change.stderr, (after.alpha - before.alpha) / 2)
            return LinearCrossing(change.alpha, stderr, message)
        crosses_before = before.test_error <= linear
        ends = (ends[0], before.alpha) if crosses_before else (after.alpha, ends[1])
        name = change.before if crosses_before else change.after
    continuation = branches.continuation(name, ends[1], coarse)
    root = _test_error_root(continuation, ends, linear, settings)
    message = f"the {name} branch beats the linear layer"
    if root is None:
        return LinearCrossing(math.nan, math.nan, message)
    return LinearCrossing(root.position, root.stderr, message)


def _linear_bracket(lowest: Sequence[Solution], linear: float) -> tuple[Solution, Solution] | str:
    """Neighbors between which the test error last falls below a level, or why there are none."""
    if not math.isfinite(linear):
        return "there is no linear layer to compare with"
    if not lowest:
        return "there is no minimum to compare with the linear layer"
    above = [solution.test_error > linear for solution in lowest]
    falls = [k for k, (before, after) in enumerate(pairwise(above)) if before and not after]
    if falls:
        return lowest[falls[-1]], lowest[falls[-1] + 1]
    relation = f"below that of the linear layer already at alpha = {lowest[0].alpha:.4g}"
    if any(above):
        relation = f"above that of the linear layer up to alpha = {lowest[-1].alpha:.4g}"
    return f"the test error of the lowest minimum is {relation}"


def _test_error_root(
    coarse: BranchContinuation, ends: tuple[float, float], level: float, settings: SolverSettings
) -> Root | None:
    """Root of the test error of a branch minus a level, between two alphas."""

    def excess_at(continuation: BranchContinuation, alpha: float) -> Sample | None:
        solution = continuation.solve_at(alpha)
        if not solution.on_branch:
            return None
        return Sample(solution.test_error - level, solution.stderr["test_error"])

    above, below = (excess_at(coarse, alpha) for alpha in (ends[1], ends[0]))
    if above is None or below is None:
        return None
    slope = (above.value - below.value) / (ends[1] - ends[0])
    position = straight_root(ends[0], below.value, ends[1], above.value)
    search = partial(find_root, bounds=ends, rtol=TEST_ERROR_RTOL)
    guess = search(partial(excess_at, coarse), position, slope)
    if guess is None:
        return None
    precise = coarse.with_settings(settings)
    return search(partial(excess_at, precise), guess.position, guess.slope)


def narrow_end(name: str, alpha_min: float, alpha_max: float) -> float:
    """The end of a range of alpha towards which a branch's basin is narrow."""
    branch = BRANCHES[name]
    is_upper = branch.continue_upwards or branch.vanishing == {"m", "theta"}
    return alpha_max if is_upper else alpha_min
