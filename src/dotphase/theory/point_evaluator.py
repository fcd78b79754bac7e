"""Evaluations of a fixed-point map: averages at a point, with warm starts and a count."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Float

from dotphase.numerics.fixed_point import FixedPoint, Iteration, Vector, fixed_point
from dotphase.numerics.proximal_map import SEARCH_ALL
from dotphase.theory.driver import OutOfTime, is_out_of_time
from dotphase.theory.expectations import Expectations, ProxStates
from dotphase.theory.fixed_point_map import FixedPointMap
from dotphase.theory.nonfinite import diagnose_averages
from dotphase.theory.responses import Responses
from dotphase.theory.settings import SolverSettings

P = TypeVar("P", bound=FixedPointMap[Any, Any])


class ProxWarmStart:
    """States of the proximal maps by number of points: starting points of the next evaluation."""

    def __init__(self, states: dict[int, ProxStates] | None = None) -> None:
        self._states = dict(states or {})
        self._calls: dict[int, int] = {}

    @property
    def max_log2_points(self) -> int:
        """log2 of the largest number of points with a state; 0 without any."""
        return max(self._states, default=0)

    def states(self, log2_points: int) -> ProxStates:
        """Warm start from the largest stored Sobol prefix."""
        stored = [level for level in self._states if level <= log2_points]
        return self._states[max(stored)] if stored else ()

    def calls(self, log2_points: int) -> int:
        """Number of evaluations on this number of points."""
        return self._calls.get(log2_points, 0)

    def update(self, log2_points: int, states: ProxStates) -> None:
        """Keep the states after an evaluation."""
        self._states[log2_points] = states
        self._calls[log2_points] = self.calls(log2_points) + 1

    def search_all(self, log2_points: int) -> None:
        """Search all points for second minima at the next evaluation."""
        self._calls[log2_points] = int(SEARCH_ALL)

    def for_neighbor(self) -> ProxWarmStart:
        """A copy for a nearby point, with a probe count of its own."""
        return ProxWarmStart(self._states)


@dataclass(frozen=True, eq=False)
class EvaluatedPoint:
    """A point with its averages.

    Attributes
    ----------
    map, x, log2_points, seed : the map, the coordinates, and the Gaussian points
    expectations : averages at x
    """

    map: FixedPointMap[Any, Any]
    x: Vector
    log2_points: int
    seed: int
    expectations: Expectations

    @cached_property
    def overlaps(self) -> Any:
        """The overlaps at x."""
        return self.map.overlaps(self.x)

    @property
    def mean(self) -> Any:
        """Averages over all points."""
        return self.expectations.mean

    @cached_property
    def image(self) -> Vector:
        """``F(x)``, one step of state evolution; NaN where it is not defined."""
        return self.map.advance(self.x, self.mean)

    @property
    def images(self) -> Float[np.ndarray, "scrambles n"]:
        """``F(x)`` from each scramble alone."""
        return self.map.advance(self.x, self.expectations.per_scramble)

    @property
    def is_finite(self) -> bool:
        """True if all averages are finite."""
        return all(np.isfinite(part).all() for part in self.mean)

    @property
    def test_error(self) -> float:
        """The test error eps_g at x."""
        return float(self.map.test_error(self.mean))

    @property
    def train_loss(self) -> float:
        """The training loss eps_t at x, if x is a fixed point."""
        return float(self.map.train_loss(self.x, self.mean))

    @property
    def free_energy(self) -> float:
        """The training loss from the free energy, which is stationary at a fixed point."""
        return float(self.map.free_energy(self.x, self.mean))

    @cached_property
    def jump_fraction(self) -> float:
        """Fraction of the points at which the proximal map has a second minimum to jump to."""
        # Through NumPy: a mean of an array on the device is a compiled call for each block.
        states = self.expectations.prox_states
        flags = [np.asarray(getattr(state, "bistable", 0.0)) for state in states]
        return float(np.mean([np.mean(flag) for flag in flags]))

    def responses(self) -> Responses:
        """Linear response of the proximal map at x."""
        states = self.expectations.prox_states
        return self.map.evaluator.responses(self.overlaps, self.log2_points, self.seed, states)


class PointEvaluator(Generic[P]):
    """Evaluates a fixed-point map, warm-starts its proximal maps and counts evaluations.

    Attributes
    ----------
    n_evaluations, start_time : evaluations so far, and the time before the first
    nonfinite_cause : description of the function that is not finite, once it was searched for
    """

    def __init__(
        self,
        fixed_point_map: P,
        settings: SolverSettings,
        warm_start: ProxWarmStart,
        n_evaluations: int = 0,
    ) -> None:
        self.map, self.settings, self.warm_start = fixed_point_map, settings, warm_start
        self.n_evaluations, self.start_time = n_evaluations, time.perf_counter()
        self.first_nonfinite: EvaluatedPoint | None = None
        self.nonfinite_cause: str | None = None
        self._latest: dict[int, EvaluatedPoint] = {}

    def evaluate(self, x: Vector, log2_points: int) -> EvaluatedPoint:
        """Averages at the overlaps with coordinates x."""
        latest = self._latest.get(log2_points)
        calls = self.warm_start.calls(log2_points)
        if latest is not None and calls != SEARCH_ALL and np.array_equal(latest.x, x):
            return latest
        if self._latest and is_out_of_time():
            raise OutOfTime(self)
        expectations = self.map.evaluator.expectations(
            self.map.overlaps(x),
            log2_points,
            self.settings.seed,
            self.warm_start.states(log2_points),
            calls,
        )
        self.warm_start.update(log2_points, expectations.prox_states)
        self.n_evaluations += 1
        point = EvaluatedPoint(self.map, x, log2_points, self.settings.seed, expectations)
        self._latest[log2_points] = point
        if self.first_nonfinite is None and not point.is_finite:
            self.first_nonfinite = point
        return point

    @property
    def finest(self) -> EvaluatedPoint:
        """The last point evaluated on the most Gaussian points."""
        return self._latest[max(self._latest)]

    def iterate(self, x: Vector, log2_points: int, iteration: Iteration) -> FixedPoint:
        """Iterate the map with damping and acceleration (`dotphase.numerics.fixed_point`)."""
        return fixed_point(
            partial(self._image, log2_points=log2_points),
            x,
            self.map.scale,
            self.map.admissible,
            iteration,
        )

    def _image(self, x: Vector, log2_points: int) -> Vector:
        return self.evaluate(x, log2_points).image

    def find_nonfinite_cause(self, point: EvaluatedPoint) -> bool:
        """Search for a function that is not finite; whether there is one."""
        self.nonfinite_cause = diagnose_averages(self.first_nonfinite or point)
        return self.nonfinite_cause is not None
