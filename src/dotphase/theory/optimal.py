"""The value of a parameter that minimizes the test error or the training loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Unpack

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.model.parameter_values import parameter_range, parameter_value, with_parameter
from dotphase.numerics.crossings import Sample, find_root, straight_root
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.sensitivity import derivative
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve

#: Default settings: derivatives at all values are taken on the same points.
SETTINGS = SolverSettings(log2_points=15)
#: Factor between values on the way to a minimum, and largest number of such steps.
FACTOR, MAX_STEPS = 2.0, 20
#: Relative step of the parameter at which the search ends; it also ends at half of the error.
RTOL, SETTLED = 1e-4, 0.5
#: Results that can be minimized.
TARGETS = ("test_error", "train_loss")


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(Result):
    """The value of a parameter at which a result is smallest.

    Attributes
    ----------
    parameter, of : names of the parameter and of the result
    value, stderr : the optimal value, and its quadrature standard error
    solution : the solution there

    Examples
    --------
    >>> best = dp.optimal(dp.positional_semantic(), "ridge", alpha=2.0, log2_points=12)
    >>> best.value > 0
    True
    """

    parameter: str
    of: str
    value: float
    stderr: float
    solution: Solution = field(repr=False)

    @property
    def description(self) -> Description:
        """The optimal value, and the result there."""
        solution = self.solution
        rows = [
            (self.parameter, format_value(self.value, self.stderr)),
            (self.of, format_value(solution.value(self.of), solution.stderr[self.of])),
        ]
        head = f"smallest {self.of} of the {solution.found} branch at alpha = {solution.alpha:g}"
        verdict = "trusted" if solution.stability.trusted else "NOT TRUSTED"
        return Description(head, tuple(rows), (f"{verdict}: {solution.stability.reason}",))


@in_double_precision
def optimal(
    model: Model,
    parameter: str,
    *,
    alpha: float,
    of: str = "test_error",
    start: str = "semantic",
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Optimum:
    """Find the value of a positive parameter that minimizes a result of a branch.

    The search is local: from the model's own value it follows `Solution.derivative` down by
    factors of two until its sign changes, and then finds its root.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    parameter : str
        "ridge", "sigma", or a number of the teacher or student.
    alpha : float
        Samples per dimension.
    of : {"test_error", "train_loss"}
        The result to minimize.
    start, settings, **changes
        As for `dotphase.solve`, `start` by name; `log2_points` is 15 by default.

    Examples
    --------
    >>> best = dp.optimal(dp.positional_semantic(), "ridge", alpha=2.0, log2_points=12)
    >>> best.solution.test_error < 0.0015
    True
    """
    validation.choice("of", of, TARGETS)
    settings = with_changes(settings, SETTINGS, changes)
    first = parameter_value(model, parameter)
    if first <= 0:
        raise InvalidInput(parameter, first, "must be positive at the beginning of the search")
    lowest, highest = parameter_range(model, parameter)
    solutions: dict[float, Solution] = {}

    def slope_at(log_value: float) -> Sample:
        """Derivative of the result by the log of the parameter."""
        value = math.exp(log_value)
        if not lowest <= value <= highest:
            rule = f"is outside [{lowest:g}, {highest:g}], where {of} has no minimum inside"
            raise InvalidInput(parameter, float(f"{value:.6g}"), rule)
        changed = with_parameter(model, parameter, value)
        solution = solve(changed, alpha, start, settings=settings)
        if not solution.on_branch:
            raise InvalidInput(parameter, value, f"has no {start} branch: the search ends there")
        solutions[log_value] = solution
        slopes = derivative(solution, parameter)
        return Sample(value * slopes.value[of], value * slopes.stderr[of])

    low, high = _bracket(slope_at, math.log(first), parameter)
    chord = (high[1].value - low[1].value) / (high[0] - low[0])
    position = straight_root(low[0], low[1].value, high[0], high[1].value)
    root = find_root(slope_at, position, chord, (low[0], high[0]), rtol=RTOL, settled=SETTLED)
    assert root is not None
    nearest = min(solutions, key=lambda log_value: abs(log_value - root.position))
    value = math.exp(root.position)
    return Optimum(parameter, of, value, value * root.stderr, solutions[nearest])


def _bracket(
    slope_at: Callable[[float], Sample], position: float, parameter: str
) -> tuple[tuple[float, Sample], tuple[float, Sample]]:
    """Neighboring positions, the lower one first, between which the slope turns positive."""
    slope = slope_at(position)
    direction = -math.copysign(1.0, slope.value)
    for _ in range(MAX_STEPS):
        advanced = position + direction * math.log(FACTOR)
        following = slope_at(advanced)
        if following.value * slope.value <= 0:
            pair = (position, slope), (advanced, following)
            return pair if direction > 0 else pair[::-1]
        position, slope = advanced, following
    raise InvalidInput(parameter, math.exp(position), "has no minimum up to there")
