"""Critical points with one step of replica symmetry breaking, from the replica-symmetric ones.

Breaking moves the losses and the test error by little, so one Newton step is enough: alpha_c moves
by the difference of the shifts of the two losses over that of their slopes, alpha_l by the shift of
the semantic test error over its slope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Unpack

from dotphase.config.serialization import fields_except
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.critical import Critical
from dotphase.theory.one_rsb.result import Broken
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solve import solve_many, solve_many_broken

#: How precisely to solve where nothing else is said.
SETTINGS = SolverSettings(rtol=5e-4, max_log2_points=17)
#: Relative distance of the points between which the slope of the test error is taken.
APART = 0.04


@dataclass(frozen=True, eq=False, repr=False)
class BrokenCritical(Result):
    """Critical sample complexities with one step of replica symmetry breaking.

    Attributes
    ----------
    alpha_c, alpha_l : where the lowest losses of the two branches cross, and where the lowest
        minimum beats the linear layer
    alpha_c_shift, alpha_l_shift : what breaking has changed
    alpha_c_shift_stderr, alpha_l_shift_stderr : the standard errors of the changes
    semantic, positional, linear : the solutions behind them, the last one at alpha_l

    Examples
    --------
    >>> list(dp.results.BrokenCritical.__annotations__)[:3]
    ['alpha_c', 'alpha_c_shift', 'alpha_c_shift_stderr']
    """

    alpha_c: float
    alpha_c_shift: float
    alpha_c_shift_stderr: float
    alpha_l: float
    alpha_l_shift: float
    alpha_l_shift_stderr: float
    semantic: Broken = field(repr=False)
    positional: Broken = field(repr=False)
    linear: Broken = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return fields_except(self, "semantic", "positional", "linear")


@in_double_precision
def broken_critical(
    model: Model,
    found: Critical,
    *,
    inner: int | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> BrokenCritical:
    """The critical points of a model with one step of replica symmetry breaking.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    found : Critical
        The replica-symmetric ones, of `dotphase.critical`.
    inner, settings, **changes
        As for `dotphase.solve` with breaking.

    Examples
    --------
    >>> model = dp.positional_semantic()
    >>> found = dp.critical(model, alpha_min=0.8, alpha_max=2.0, log2_points=12)
    >>> broken = dp.analysis.broken_critical(model, found, inner=9, log2_points=12)
    >>> abs(broken.alpha_c_shift) < 0.01
    True
    """
    if not found.crosses:
        rule = "must have alpha_l, and alpha_c where positional and semantic losses cross"
        raise InvalidInput("found", found.message, rule)
    chosen = with_changes(settings, SETTINGS, changes)
    points = [(found.alpha_c, "semantic"), (found.alpha_c, "positional")]
    points += [(found.alpha_l, "semantic")]
    requests = [(model, alpha, branch) for alpha, branch in points]
    semantic, positional, linear = solve_many_broken(requests, inner=inner, settings=chosen)
    slope = semantic.symmetric.loss_slope - positional.symmetric.loss_slope
    gap = semantic.shift["train_loss"] - positional.shift["train_loss"]
    errors = (each.shift_stderr["train_loss"] for each in (semantic, positional))
    shift_c, error_c = -gap / slope, math.hypot(*errors) / abs(slope)
    beside = [found.alpha_l * (1 + step) for step in (-APART / 2, APART / 2)]
    low, high = solve_many([(model, alpha, "semantic") for alpha in beside], settings=chosen)
    fall = (high.test_error - low.test_error) / (high.alpha - low.alpha)
    shift_l = -linear.shift["test_error"] / fall
    error_l = abs(linear.shift_stderr["test_error"] / fall)
    return BrokenCritical(
        alpha_c=found.alpha_c + shift_c,
        alpha_c_shift=shift_c,
        alpha_c_shift_stderr=error_c,
        alpha_l=found.alpha_l + shift_l,
        alpha_l_shift=shift_l,
        alpha_l_shift_stderr=error_l,
        semantic=semantic,
        positional=positional,
        linear=linear,
    )
