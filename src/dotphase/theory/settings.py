"""How precisely to solve: tolerances, points, seed."""

from __future__ import annotations

from dataclasses import dataclass

from dotphase._numerics import validate
from dotphase._numerics.fixed_point import Iteration
from dotphase._numerics.quadrature import BLOCK_LOG2

#: log2 of the fewest and, by default, most points a result is reported from.
FEWEST, MOST = 14, 20


@dataclass(frozen=True)
class Settings:
    """How to solve.

    Attributes
    ----------
    rtol : relative standard error that ends the growth of the quadrature
    log2_points : log2 of a fixed number of points; None lets it grow from `FEWEST` to `most`
    most : log2 of the most points
    seed : seed of the Gaussian points
    iteration : damping, acceleration, tolerance of the fixed-point iteration; None leaves
        them to `iteration_on`
    """

    rtol: float = 2e-3
    log2_points: int | None = None
    most: int = MOST
    seed: int = 0
    iteration: Iteration | None = None

    def iteration_on(self, log2_points: int) -> Iteration:
        """Settings of the iteration on a given number of points.

        Far below the quadrature error, but not below the weight of two points: the map
        moves by that much when two of them jump, and no iteration can settle deeper.
        """
        if self.iteration is not None:
            return self.iteration
        noise = 2.0 ** (1 - log2_points)
        return Iteration(tolerance=max(min(1e-5, self.rtol / 100), noise), floor=10 * noise)


def check_alpha(alpha: object) -> float:
    """A valid sample complexity."""
    return validate.number("alpha", alpha, above=0)


def check_settings(
    rtol: float, log2_points: int | None, most: int, seed: int, iteration: Iteration | None
) -> Settings:
    """Validated settings of a solve."""
    rtol = validate.number("rtol", rtol, above=0)
    if log2_points is not None:
        log2_points = validate.whole("log2_points", log2_points, at_least=BLOCK_LOG2, at_most=24)
    most = validate.whole("most", most, at_least=BLOCK_LOG2, at_most=24)
    seed = validate.whole("seed", seed, at_least=0)
    return Settings(rtol, log2_points, most, seed, iteration)
