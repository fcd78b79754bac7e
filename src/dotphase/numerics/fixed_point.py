"""Fixed points of a map that is costly, noisy and full of other fixed points.

The rules that `fixed_point` keeps:

- convergence is judged by the undamped residual ``F(x) - x``, and the point returned is
  one at which that residual was measured;
- accelerated steps are taken only while they pay: one that lengthens the residual, leaves
  the admissible set, jumps far or runs against the plain iteration is undone or replaced by
  a short damped step, so that the iteration does not hop to another fixed point;
- a cycle or a stall shortens the damped step; if the residual then stands still below the
  noise that the caller expects of its map, that is convergence too, and said so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.numerics.outcome import Outcome

Vector = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class FixedPoint:
    """Where the iteration ended: the point, the map there, and how well they agree."""

    x: Vector
    image: Vector
    residual: float
    iterations: int
    outcome: Outcome


@dataclass(frozen=True)
class Iteration:
    """Settings of `fixed_point`.

    Attributes
    ----------
    tolerance : undamped relative residual at which to stop
    floor : residual that is accepted when the iteration makes no more progress
    max_steps : largest number of evaluations of the map
    step : share of the way to F(x) that a damped step goes (1 is undamped)
    anderson_depth : past residuals used by Anderson's acceleration; 0 turns it off
    near : residual below which acceleration starts

    Examples
    --------
    >>> slow = dp.Iteration(step=0.2, anderson_depth=0, max_steps=1000)
    >>> solution = dp.solve(dp.positional_semantic(), 2.0, log2_points=12, iteration=slow)
    >>> solution.converged
    True
    """

    tolerance: float = 1e-6
    floor: float = 2e-4
    max_steps: int = 400
    step: float = 0.4
    anderson_depth: int = 5
    near: float = 0.5

    def __post_init__(self) -> None:
        for name in ("tolerance", "floor", "near"):
            validation.number(name, getattr(self, name), at_least=0)
        validation.number("step", self.step, above=0, at_most=1)
        validation.integer("max_steps", self.max_steps, at_least=1)
        validation.integer("anderson_depth", self.anderson_depth, at_least=0)


PATIENCE = 12
SMALLEST_STEP = 0.03
LONGEST_JUMP = 0.5


def fixed_point(
    function: Callable[[Vector], Vector],
    start: Vector,
    scale: Callable[[Vector], Vector],
    admissible: Callable[[Vector], bool],
    settings: Iteration,
) -> FixedPoint:
    """Iterate a map from `start` with damping and Anderson acceleration.

    Parameters
    ----------
    function : callable
        The map.
    start : array
        Admissible first point.
    scale : callable
        Sizes against which the entries of the residual at x are measured.
    admissible : callable
        Returns True where the map is defined.
    settings : Iteration
        Damping, acceleration and tolerances.
    """
    step = settings.step
    x = last_good = start
    best: FixedPoint | None = None
    xs: list[Vector] = []
    residuals: list[Vector] = []
    previous: tuple[Vector, Vector, float] | None = None
    accelerated = False
    without_progress = failures = 0

    for count in range(1, settings.max_steps + 1):
        image = function(x)
        if not (np.all(np.isfinite(image)) and admissible(image)):
            failures += 1
            # Half way back to the last point whose image was usable; from the very first
            # point there is nowhere to go back to.
            if failures > 30 or last_good is x:
                last = best or FixedPoint(x, x, float("inf"), count, Outcome.LEFT_DOMAIN)
                return replace(last, iterations=count, outcome=Outcome.LEFT_DOMAIN)
            x = (x + last_good) / 2
            xs, residuals, accelerated = [], [], False
            continue

        residual = image - x
        size = float(np.max(np.abs(residual) / scale(x)))
        drifting = previous is not None and _cosine(residual, previous[1], scale(x)) > 0.5
        if best is None or size < 0.9 * best.residual or (drifting and size > settings.floor):
            # Steady motion is progress too: the residual grows on the way out of the
            # neighbourhood of a fixed point that repels.
            without_progress = 0
        else:
            without_progress += 1
        if best is None or size < best.residual:
            best = FixedPoint(x, image, size, count, Outcome.STEPS)
        if size <= settings.tolerance:
            return FixedPoint(x, image, size, count, Outcome.CONVERGED)

        if accelerated and previous is not None and size > 1.5 * previous[2]:
            xs, residuals, accelerated = [], [], False
            x = previous[0] + step * previous[1]
            previous = None
            continue

        if without_progress >= PATIENCE:
            if best.residual <= settings.floor:
                return replace(best, iterations=count, outcome=Outcome.NOISE_FLOOR)
            if step <= SMALLEST_STEP:
                return replace(best, iterations=count, outcome=Outcome.CYCLE)
            step = max(step / 2, SMALLEST_STEP)
            without_progress = 0
            xs, residuals = [], []
            x, residual, size = best.x, best.image - best.x, best.residual

        last_good = x
        previous = (x, residual, size)
        xs.append(x)
        residuals.append(residual)
        del xs[: -settings.anderson_depth - 1], residuals[: -settings.anderson_depth - 1]

        accelerated = False
        proposal = x + step * residual
        if settings.anderson_depth and len(xs) > 1 and size < settings.near:
            jump = _anderson(xs, residuals, scale(x))
            if _acceptable(jump - x, residual, scale(x)) and admissible(jump):
                proposal, accelerated = jump, True
        x = proposal

    assert best is not None
    if best.residual <= settings.floor:
        return replace(best, iterations=settings.max_steps, outcome=Outcome.NOISE_FLOOR)
    return best


def _acceptable(move: Vector, residual: Vector, scale: Vector) -> bool:
    """Whether an accelerated move is short and does not run against the plain iteration.

    A move against the residual heads for a fixed point that the iteration is leaving.
    """
    along = float(np.sum(move * residual / scale**2))
    return along > 0 and bool(np.max(np.abs(move) / scale) < LONGEST_JUMP)


def _cosine(a: Vector, b: Vector, scale: Vector) -> float:
    a, b = a / scale, b / scale
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300))


def _anderson(xs: list[Vector], residuals: list[Vector], scale: Vector) -> Vector:
    """Anderson's step: the combination of past points whose residuals cancel best."""
    x, residual = xs[-1], residuals[-1]
    moves = np.diff(np.stack(xs), axis=0).T
    changes = np.diff(np.stack(residuals), axis=0).T
    weights, *_ = np.linalg.lstsq(changes / scale[:, None], residual / scale, rcond=1e-8)
    return x + residual - (moves + changes) @ weights
