"""Settings of the solver: tolerances, points, seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.errors import InvalidInput
from dotphase.numerics.fixed_point import Iteration
from dotphase.numerics.quadrature import MIN_QUADRATURE_LOG2

#: log2 of the fewest and, by default, most points a result is reported from.
MIN_LOG2_POINTS, MAX_LOG2_POINTS = 14, 20
#: log2 of the most points that may be asked for.
LOG2_POINTS_LIMIT = 24
#: Residual of a point on the way to a result, in quadrature errors of the map.
QUADRATURE_SHARE = 0.1


@dataclass(frozen=True)
class SolverSettings:
    """Settings of the solver.

    Attributes
    ----------
    rtol : relative standard error of the results at which no more points are added
    log2_points : log2 of a fixed number of Gaussian points; None lets it grow up to
        `max_log2_points`
    max_log2_points : log2 of the most points to use on the way to `rtol`
    seed : seed of the Gaussian points
    iteration : damping, acceleration, tolerance of the fixed-point iteration; None leaves
        them to `iteration_on`
    max_seconds : time after which a solve returns the best point so far, not converged; None for
        no limit

    Examples
    --------
    >>> from dotphase.theory.settings import SolverSettings
    >>> SolverSettings(log2_points=14).rtol
    0.002
    """

    rtol: float = 2e-3
    log2_points: int | None = None
    max_log2_points: int = MAX_LOG2_POINTS
    seed: int = 0
    iteration: Iteration | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "rtol": validation.number("rtol", self.rtol, above=0),
            "max_log2_points": validation.log2(
                "max_log2_points", self.max_log2_points, MIN_QUADRATURE_LOG2, LOG2_POINTS_LIMIT
            ),
            "seed": validation.integer("seed", self.seed, at_least=0),
        }
        if not isinstance(self.iteration, Iteration | None):
            raise InvalidInput("iteration", self.iteration, "must be None or a dp.Iteration")
        if self.log2_points is not None:
            checked["log2_points"] = self.fixed_points
        if self.max_seconds is not None:
            checked["max_seconds"] = validation.number("max_seconds", self.max_seconds, above=0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def initial_log2_points(self) -> int:
        """log2 of the smallest number of points that a result may use."""
        return self.log2_points or MIN_LOG2_POINTS

    @property
    def fixed_points(self) -> int:
        """`log2_points`, which must be set where all results need the same points."""
        return validation.log2(
            "log2_points", self.log2_points, MIN_QUADRATURE_LOG2, LOG2_POINTS_LIMIT
        )

    def iteration_on(self, log2_points: int) -> Iteration:
        """Settings of the iteration on a given number of points.

        Far below the tolerance of the results, but not below the weight of two points: the map
        moves by that much when two of them jump, and no iteration can settle deeper.
        """
        if self.iteration is not None:
            return self.iteration
        noise = 2.0 ** (1 - log2_points)
        tolerance = max(min(1e-4, self.rtol / 200), noise)
        return Iteration(tolerance=tolerance, floor=10 * tolerance)

    def on_the_way(self, log2_points: int, max_steps: int | None = None) -> SolverSettings:
        """Settings for points on the way to a result: solved within a part of their error."""
        usual = self.iteration_on(log2_points)
        max_steps = min(usual.max_steps, max_steps or usual.max_steps)
        iteration = replace(usual, max_steps=max_steps, quadrature_share=QUADRATURE_SHARE)
        return replace(self, log2_points=log2_points, iteration=iteration)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, for datasets; a user's iteration becomes text."""
        numbers = asdict(replace(self, iteration=None))
        if self.max_seconds is None:  # as before there was a limit
            del numbers["max_seconds"]
        return numbers | {"iteration": self.iteration and str(self.iteration)}


class SolverFields(TypedDict, total=False):
    """The fields of `SolverSettings`, as keywords of the functions that solve."""

    rtol: float
    log2_points: int | None
    max_log2_points: int
    seed: int
    iteration: Iteration | None
    max_seconds: float | None


#: Default settings of `solve`.
DEFAULT = SolverSettings()
#: Default settings with symmetry breaking, where small differences of losses matter.
BREAKING = SolverSettings(rtol=5e-4, max_log2_points=19)


def with_changes(
    settings: SolverSettings | None, default: SolverSettings, changes: SolverFields
) -> SolverSettings:
    """The user's settings, or the default, with some fields changed."""
    return replace_fields(settings or default, changes)


def check_alpha(alpha: object) -> float:
    """A valid sample complexity."""
    return validation.number("alpha", alpha, above=0)
