"""Critical points: where branches cross, and where attention beats the linear layer.

The training losses of the semantic and the positional branch cross at alpha_c. Both are
solved on the same Gaussian points, so that most of the quadrature error drops out of their
difference; and the derivative of a training loss in alpha is known exactly at a fixed point
(it is the mean of the proximal minimum, because the free energy is stationary), so that a
few Newton steps find the crossing. Minima are compared with minima: a branch that is a saddle
does not take part, and where each stops being a minimum, and ends, is looked for as well.
alpha_l is where the test error of the branch with the lowest training loss passes that of the
linear positional layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from dotphase._numerics import validate
from dotphase._numerics.crossing import straight_root
from dotphase._numerics.precision import in_double_precision
from dotphase.model import Model
from dotphase.model.definition import check_model
from dotphase.theory.branches import BRANCHES
from dotphase.theory.ends import Limits, limits_of
from dotphase.theory.follow import Follower
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.steps import Steps, run
from dotphase.theory.uncertainty import standard_error

#: Where the search for a crossing begins, the factor between its steps, and where it ends.
FIRST, FACTOR, SMALLEST, LARGEST = 1.0, 1.25, 0.05, 8.0
#: log2 of the points on which the crossing is bracketed.
COARSE = 13
#: log2 of the points on which the limits of the branches are looked for.
LIMITS = 14
#: How precisely to solve where nothing else is said; all solutions lie on the same points.
SETTINGS = SolverSettings(log2_points=17)
#: Newton steps stop when alpha moves by less than this share of itself.
SETTLED = 1e-5


@dataclass(frozen=True)
class Critical:
    """Critical sample complexities of one model.

    Attributes
    ----------
    alpha_c, alpha_c_stderr : where the training losses of the two branches cross
    alpha_l, alpha_l_stderr : where the lowest minimum beats the linear layer in test error
    linear_test_error : test error of the linear positional layer; NaN, as alpha_l, without one
    trusted : whether the theory can be trusted for both branches at alpha_c
    message : what was found, or why not
    semantic, positional : the two solutions at alpha_c, if there is one
    limits : where each branch stops being a minimum and where it ends, by its name

    Examples
    --------
    >>> found = dp.critical(dp.positional_semantic(), smallest=0.8, largest=2.0, log2_points=12)
    >>> found.found
    True
    """

    alpha_c: float
    alpha_c_stderr: float
    alpha_l: float
    alpha_l_stderr: float
    linear_test_error: float
    trusted: bool
    message: str
    semantic: Solution | None
    positional: Solution | None
    limits: dict[str, Limits] = field(default_factory=dict)

    @property
    def alpha_c_model_error(self) -> float:
        """How far breaking replica symmetry would move alpha_c: the larger of the errors of the two
        losses, over the difference of their slopes."""
        if self.semantic is None or self.positional is None:
            return math.nan
        pair = (self.semantic, self.positional)
        slope = abs(self.semantic.loss_slope - self.positional.loss_slope)
        return max(solution.model_error["train_loss"] for solution in pair) / slope

    @property
    def stability_loss(self) -> dict[str, float]:
        """The alpha at which each branch stops being a minimum; NaN where there is none."""
        return {name: limits.stability_loss for name, limits in self.limits.items()}

    @property
    def branch_end(self) -> dict[str, float]:
        """The alpha at which each branch ends; NaN where there is none."""
        return {name: limits.end for name, limits in self.limits.items()}

    @property
    def found(self) -> bool:
        """Whether both critical points exist in the range that was searched."""
        return math.isfinite(self.alpha_c) and math.isfinite(self.alpha_l)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        left_out = ("semantic", "positional", "limits")
        errors = {
            "stability_loss_stderr": {k: v.stability_loss_stderr for k, v in self.limits.items()},
            "branch_end_stderr": {k: v.end_stderr for k, v in self.limits.items()},
        }
        return {
            **{name: value for name, value in vars(self).items() if name not in left_out},
            "alpha_c_model_error": self.alpha_c_model_error,
            "stability_loss": self.stability_loss,
            "branch_end": self.branch_end,
            **errors,
        }


@in_double_precision
def critical(
    model: Model,
    *,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
    limits: bool = True,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Critical:
    """The critical points of a model.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    smallest, largest : float
        Range of alpha to search.
    limits : bool
        Whether to look for where each branch stops being a minimum and where it ends, too.
    settings, **changes
        As for `dotphase.solve`; `log2_points`, 17 by default, has to be fixed.

    Examples
    --------
    >>> found = dp.critical(dp.positional_semantic(), smallest=0.8, largest=2.0, log2_points=12)
    >>> 1.1 < found.alpha_c < 1.4
    True
    """
    check_model(model)
    settings = with_changes(settings, SETTINGS, changes)
    return run([_searching(model, smallest, largest, limits, settings)])[0]


@in_double_precision
def critical_line(
    family: Callable[[float], Model],
    values: Iterable[float],
    *,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
    limits: bool = False,
    progress: Callable[[Critical], None] | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[Critical]:
    """Critical points along a one-parameter family of models.

    Parameters
    ----------
    family : callable
        The model for a value of the parameter, as
        ``lambda omega: dp.positional_semantic(omega=omega)``.
    values : iterable of float
        Values of the parameter.
    progress : callable, optional
        Called with each result as it is finished.

    Other parameters are those of `critical`.

    Examples
    --------
    >>> line = dp.critical_line(dp.positional_semantic, [0.3], largest=2.0, log2_points=12)
    >>> len(line)
    1
    """
    settings = with_changes(settings, SETTINGS, changes)
    work = [_searching(family(value), smallest, largest, limits, settings) for value in values]
    return run(work, progress=progress)


def _searching(
    model: Model, smallest: float, largest: float, limits: bool, settings: SolverSettings
) -> Steps[Critical]:
    """The search in steps; what is asked is checked before it runs."""
    smallest = validate.number("smallest", smallest, above=0)
    largest = validate.number("largest", largest, above=smallest)
    rough = replace(settings, log2_points=min(COARSE, settings.fixed_points))
    if not limits:
        return _search(_Pair(model, rough), _Pair(model, settings), smallest, largest)
    return _with_limits(model, rough, settings, smallest, largest)


def _with_limits(
    model: Model, rough: SolverSettings, settings: SolverSettings, smallest: float, largest: float
) -> Steps[Critical]:
    """The crossing, and the limits of both branches from there."""
    bracketing = _Pair(model, rough)
    found = yield from _search(bracketing, _Pair(model, settings), smallest, largest)
    walking = replace(settings, log2_points=min(LIMITS, settings.fixed_points))
    limits = {}
    for name, last in bracketing.minimum_at.items():
        inside = found.alpha_c if found.semantic else last
        outside = largest if BRANCHES[name].from_few else smallest
        limits[name] = Limits()
        if inside is not None and inside != outside:
            limits[name] = yield from limits_of(model, name, inside, outside, walking, settings)
    return replace(found, limits=limits)


class _Pair:
    """Both branches at one alpha after another, on the same points."""

    def __init__(self, model: Model, settings: SolverSettings) -> None:
        self.semantic = Follower(model, "semantic", settings)
        self.positional = Follower(model, "positional", settings)
        self.minimum_at: dict[str, float | None] = {"semantic": None, "positional": None}

    def at(self, alpha: float) -> Steps[tuple[Solution, Solution]]:
        semantic = yield from self.semantic.at(alpha)
        positional = yield from self.positional.at(alpha)
        for solution in (semantic, positional):
            if solution.is_minimum:
                self.minimum_at[solution.branch] = alpha
        return semantic, positional


def _gap(semantic: Solution, positional: Solution) -> float:
    """Semantic minus positional training loss; positive where the semantic branch is no minimum,
    negative where the positional one is none."""
    if not semantic.is_minimum:
        return math.inf
    if not positional.is_minimum:
        return -math.inf
    return semantic.free_energy - positional.free_energy


def _search(rough: _Pair, exact: _Pair, smallest: float, largest: float) -> Steps[Critical]:
    alpha = min(max(FIRST, smallest), largest)
    pair = yield from rough.at(alpha)
    linear = pair[0].linear_test_error
    bracket: dict[bool, tuple[float, float]] = {}
    while True:
        gap = _gap(*pair)
        above = gap > 0  # the positional branch still wins: the crossing is at larger alpha
        bracket[above] = (alpha, gap)
        if len(bracket) == 2:
            break
        following = alpha * FACTOR if above else alpha / FACTOR
        if not smallest <= following <= largest:
            what = "positional" if above else "semantic"
            where = f"[{smallest:g}, {largest:g}]"
            return _nothing(linear, f"the {what} branch has the lower loss in all of {where}")
        alpha = following
        pair = yield from rough.at(alpha)
    (low, gap_low), (high, gap_high) = bracket[True], bracket[False]
    if not (math.isfinite(gap_low) and math.isfinite(gap_high)):
        where = f"between alpha = {low:g} and {high:g}"
        what = f"one branch stops being a minimum or ends {where}, before the losses cross"
        return _nothing(linear, what)
    guess = straight_root(low, gap_low, high, gap_high)
    pair = yield from exact.at(guess)
    for _ in range(8):
        if not (pair[0].is_minimum and pair[1].is_minimum):
            what = f"one branch is no minimum at alpha = {guess:g}, next to the crossing"
            return _nothing(linear, what)
        slope = pair[0].loss_slope - pair[1].loss_slope
        step = -_gap(*pair) / slope
        if abs(step) < SETTLED * guess:
            break
        # The bracket is from few points: the crossing may lie just outside it.
        guess = min(max(guess + step, low / FACTOR), high * FACTOR)
        pair = yield from exact.at(guess)
    semantic, positional = pair
    difference = semantic.samples["train_loss"] - positional.samples["train_loss"]
    alpha_c, error = guess, standard_error(difference) / abs(slope)
    alpha_l, error_l = yield from _beats_linear(exact.semantic, semantic, linear, largest)
    doubtful = [solution for solution in pair if not solution.stability.trusted]
    doubts = "; ".join(f"{solution.found}: {solution.stability.reason}" for solution in doubtful)
    message = doubts or "both branches can be trusted at alpha_c"
    return Critical(alpha_c, error, alpha_l, error_l, linear, not doubtful, message, *pair)


def _beats_linear(
    follower: Follower, here: Solution, linear: float, largest: float
) -> Steps[tuple[float, float]]:
    """Where the semantic test error passes that of the linear layer, from alpha_c upwards.

    Just above alpha_c the semantic branch has the lowest loss; if it is below the linear
    layer there already, the test error jumps past it at alpha_c itself.
    """
    if not math.isfinite(linear):
        return math.nan, math.nan
    before = (here.alpha, here.test_error - linear)
    if before[1] <= 0:
        return here.alpha, 0.0
    now = before
    while now[1] > 0:
        alpha = now[0] * FACTOR
        if alpha > largest:
            return math.nan, math.nan
        here = yield from follower.at(alpha)
        if not here.there:
            return math.nan, math.nan
        before, now = now, (alpha, here.test_error - linear)
    # Newton steps on a smooth, almost straight curve that falls. Its slope is taken from points
    # well apart: close ones differ by the tolerance of the solver as much as by their alpha.
    slope = (now[1] - before[1]) / (now[0] - before[0])
    for _ in range(8):
        step = -now[1] / slope
        if abs(step) < 10 * SETTLED * now[0]:
            break
        here = yield from follower.at(now[0] + step)
        if not here.there:
            return math.nan, math.nan
        before, now = now, (here.alpha, here.test_error - linear)
        if abs(now[0] - before[0]) > 0.02 * now[0]:
            slope = min(slope / 2, (now[1] - before[1]) / (now[0] - before[0]))
    return now[0] - now[1] / slope, here.stderr["test_error"] / abs(slope)


def _nothing(linear: float, message: str) -> Critical:
    nan = math.nan
    return Critical(nan, nan, nan, nan, linear, False, message, None, None)
