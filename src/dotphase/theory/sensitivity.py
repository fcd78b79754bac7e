"""Derivatives of a solution by alpha and by the numbers of its model.

At a fixed point ``x = F(x; p)`` the overlaps change by

    dx/dp = (1 - J)^{-1} dF/dp,

with J the Jacobian of one step. The training loss is stationary in x, so that only
its explicit dependence on p counts; the test error changes through p and through x. Alpha and the
ridge enter after the averages over the Gaussian points, so that their dF/dp is exact algebra. Other
numbers enter the averages. There dF/dp is a central difference on the same points, wide enough to
average over the points that jump. Errors are from leaving out one scramble at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float, Int

from dotphase.config.formatting import LABELS, Description, format_value
from dotphase.errors import InvalidInput
from dotphase.model.parameter_values import parameter_names, parameter_value, with_parameter
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.numerics.statistics import jackknife_error
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.driver import run_quietly
from dotphase.theory.expectations import Expectations, ProxStates
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.multipliers import step_jacobian
from dotphase.theory.newton import DIFFERENCE_STEP
from dotphase.theory.overlaps import DIMENSIONS, Overlaps, is_zero
from dotphase.theory.point_evaluator import EvaluatedPoint
from dotphase.theory.quadrature_error import STUDENT_T

if TYPE_CHECKING:
    from dotphase.theory.solution import Solution

#: Relative step for numbers that enter after the averages, and for others.
ALGEBRAIC_STEP, STEP = 1e-4, 0.02
#: Smallest step of other numbers, for those that are near zero.
MIN_STEP = 0.004
#: Evaluations before the difference, each with another probe for lower minima of the proximal map.
WARM_UP = 4


@dataclass(frozen=True, eq=False, repr=False)
class Derivative(Result):
    """Derivatives of a solution by one number.

    Attributes
    ----------
    parameter : name of the number
    at : its value
    overlaps : derivatives of the overlaps
    value : derivatives of the norms of token 1, of the training loss and of the test error
    stderr : quadrature standard errors of these

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> solution.derivative("alpha").test_error < 0
    True
    """

    dimensions: ClassVar = DIMENSIONS

    parameter: str
    at: float
    overlaps: Overlaps
    value: dict[str, float]
    stderr: dict[str, float]

    @property
    def train_loss(self) -> float:
        """Derivative of the training loss."""
        return self.value["train_loss"]

    @property
    def test_error(self) -> float:
        """Derivative of the test error."""
        return self.value["test_error"]

    @property
    def description(self) -> Description:
        """All derivatives with their errors."""
        rows = [
            (LABELS.get(name, name), format_value(value, self.stderr[name]))
            for name, value in self.value.items()
        ]
        return Description(f"derivatives by {self.parameter} at {self.at:g}", tuple(rows))


@in_double_precision
def derivative(solution: Solution, parameter: str) -> Derivative:
    """Differentiate a solution by alpha or by a number of its model (`Solution.derivative`)."""
    if not solution.converged or is_zero(solution.overlaps, solution.model):
        rule = "can be differentiated by only at a fixed point with a nonzero student"
        raise InvalidInput("parameter", parameter, rule)
    if parameter != "alpha" and parameter not in parameter_names(solution.model):
        allowed = ", ".join(["alpha", *parameter_names(solution.model)])
        raise InvalidInput("parameter", parameter, f"must be one of {allowed}")
    return run_quietly(lambda: _differentiate(solution, parameter))


@dataclass(frozen=True, eq=False)
class _Shifted:
    """The map and its averages at a shifted value of the parameter, and the shift."""

    map: StateEvolutionMap
    expectations: Expectations
    shift: float


def _differentiate(solution: Solution, parameter: str) -> Derivative:
    center = StateEvolutionMap.from_initial(solution.model, solution.alpha, solution.overlaps)
    x = center.coordinates.pack(solution.overlaps)
    point = _warm_point(solution, center, x)
    value = solution.alpha if parameter == "alpha" else parameter_value(solution.model, parameter)
    above, below = _shifted(solution, point, parameter, value)
    width = above.shift - below.shift
    free = center.free(x)

    def by_parameter(name: str) -> np.ndarray:
        """Derivative at fixed overlaps, from each scramble."""
        return (_per_scramble(above, x, name) - _per_scramble(below, x, name)) / width

    jacobian, gradient = _linearize(center, point, free)
    parts = {
        "residual": by_parameter("advance")[:, free],
        "jacobian": jacobian,
        "gradient": gradient,
        "train_loss": by_parameter("free_energy"),
        "test_error": by_parameter("test_error"),
    }

    def results(means: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, float]]:
        slope = np.zeros(x.size)
        identity = np.eye(free.size)
        slope[free] = np.linalg.solve(identity - means["jacobian"], means["residual"])
        test_error = float(means["test_error"] + means["gradient"] @ slope[free])
        losses = {"train_loss": float(means["train_loss"]), "test_error": test_error}
        return slope, _norm_slopes(above, below, x, slope) | losses

    slope, values = results({name: np.mean(part, axis=0) for name, part in parts.items()})
    jackknife = [
        results({name: np.mean(np.delete(part, k, axis=0), axis=0) for name, part in parts.items()})
        for k in range(N_SCRAMBLES)
    ]
    errors = {name: jackknife_error([row[name] for _, row in jackknife]) for name in values}
    stderr = {name: float(STUDENT_T * error) for name, error in errors.items()}
    overlaps = _overlap_slopes(above, below, x, slope)
    return Derivative(parameter, value, overlaps, values, stderr)


def _per_scramble(shifted: _Shifted, x: Float[np.ndarray, " n"], name: str) -> np.ndarray:
    """The map, the free energy or the test error, from each scramble."""
    averages = shifted.expectations.per_scramble
    if name == "test_error":
        return np.asarray(shifted.map.test_error(averages))
    return np.asarray(getattr(shifted.map, name)(x, averages))


def _warm_point(
    solution: Solution, center: StateEvolutionMap, x: Float[np.ndarray, " n"]
) -> EvaluatedPoint:
    """The fixed point with its averages, after several probes of the proximal map."""
    states: ProxStates = ()
    for call in range(WARM_UP):
        expectations = center.evaluator.expectations(
            solution.overlaps, solution.log2_points, solution.seed, states, call
        )
        states = expectations.prox_states
    return EvaluatedPoint(center, x, solution.log2_points, solution.seed, expectations)


def _linearize(
    center: StateEvolutionMap, point: EvaluatedPoint, free: Int[np.ndarray, " free"]
) -> tuple[Float[np.ndarray, "scrambles f f"], Float[np.ndarray, "scrambles f"]]:
    """Jacobian of the map and gradient of the test error in the free coordinates.

    Columns of the Jacobian are central differences, or averages with the density's derivative,
    whichever varies less between the scrambles: many jumping points make differences noisy.
    """
    x, responses = point.x, point.responses()
    hats = center.conjugates(point.overlaps, point.mean)
    jacobian = step_jacobian(center, x, hats, responses.slopes)
    columns, gradient = [], []
    for index in free:
        slopes = _central_difference(center, point, int(index))
        exact = jacobian[:, :, index]
        is_precise = np.sum(np.var(exact, axis=0)) < np.sum(np.var(slopes["advance"], axis=0))
        columns.append(exact if is_precise else slopes["advance"])
        gradient.append(slopes["test_error"])
    return np.stack(columns, axis=2)[:, free], np.stack(gradient, axis=1)


def _central_difference(
    center: StateEvolutionMap, point: EvaluatedPoint, index: int
) -> dict[str, np.ndarray]:
    """Derivatives of the map and of the test error by one coordinate, from each scramble."""
    x, step = point.x, np.zeros(point.x.size)
    step[index] = DIFFERENCE_STEP * center.scale(x)[index]
    # Next to the edge of the domain the difference is one-sided.
    ends = [end if center.admissible(end) else x for end in (x + step, x - step)]
    states = point.expectations.prox_states
    values: dict[str, list[np.ndarray]] = {"advance": [], "test_error": []}
    for end in ends:
        expectations = center.evaluator.expectations(
            center.overlaps(end), point.log2_points, point.seed, states, WARM_UP
        )
        for name, column in values.items():
            column.append(_per_scramble(_Shifted(center, expectations, 0.0), end, name))
    width = (ends[0] - ends[1])[index]
    return {name: (above - below) / width for name, (above, below) in values.items()}


def _shifted(
    solution: Solution, point: EvaluatedPoint, parameter: str, value: float
) -> tuple[_Shifted, _Shifted]:
    """The map at a larger and at a smaller value of the parameter."""
    is_algebraic = parameter in ("alpha", "ridge")
    step = ALGEBRAIC_STEP * value if is_algebraic else max(STEP * abs(value), MIN_STEP)
    center: StateEvolutionMap = point.map  # type: ignore[assignment]

    def at(shift: float) -> _Shifted:
        if parameter == "alpha":
            return _Shifted(replace(center, alpha=value + shift), point.expectations, shift)
        model = with_parameter(solution.model, parameter, value + shift)
        coordinates = replace(center.coordinates, model=model)
        shifted = replace(center, model=model, coordinates=coordinates)
        if is_algebraic:
            return _Shifted(shifted, point.expectations, shift)
        averages = shifted.evaluator.expectations(
            shifted.overlaps(point.x),
            point.log2_points,
            point.seed,
            point.expectations.prox_states,
            WARM_UP,
        )
        return _Shifted(shifted, averages, shift)

    return at(step), at(-step)


def _overlap_slopes(
    above: _Shifted, below: _Shifted, x: Float[np.ndarray, " n"], slope: Float[np.ndarray, " n"]
) -> Overlaps:
    """Derivatives of the overlaps, whose coordinates depend on sigma."""
    width = above.shift - below.shift
    parts = zip(
        above.map.overlaps(x + above.shift * slope),
        below.map.overlaps(x + below.shift * slope),
        strict=True,
    )
    return Overlaps(*((np.asarray(high) - np.asarray(low)) / width for high, low in parts))


def _norm_slopes(
    above: _Shifted, below: _Shifted, x: Float[np.ndarray, " n"], slope: Float[np.ndarray, " n"]
) -> dict[str, float]:
    width = above.shift - below.shift
    high = above.map.norms(x + above.shift * slope)
    low = below.map.norms(x + below.shift * slope)
    return {name: (high[name] - low[name]) / width for name in high}
