"""Find a fixed point of a costly, noisy map with several fixed points.

`fixed_point` follows three rules:

- The undamped residual ``F(x) - x`` decides about convergence. It was measured at the returned
  point.
- Accelerated steps must pay. A step that lengthens the residual, leaves the admissible set, jumps
  far or opposes the plain iteration is undone or replaced by a short damped step, so that the
  iteration does not reach another fixed point.
- A cycle or a stall shortens the damped step. A residual that then stays below the noise of the map
  counts as convergence, with an outcome of its own.
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
    """The result of an iteration.

    Attributes
    ----------
    x, image : the point and ``F(x)``
    residual : largest undamped relative residual
    iterations : number of evaluations
    outcome : why the iteration stopped
    """

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
    tolerance : undamped relative residual at which the iteration stops
    floor : residual that counts as convergence if the iteration makes no more progress
    max_steps : largest number of evaluations of the map
    step : length of a damped step as a fraction of ``F(x) - x`` (1 is undamped)
    anderson_depth : number of past residuals in Anderson's acceleration; 0 turns it off
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


#: Evaluations without progress after which the damped step is shortened.
PATIENCE = 12
#: Length of the shortest damped step.
MIN_STEP = 0.03
#: Longest accelerated step, in units of the scale.
MAX_JUMP = 0.5
#: Largest number of steps back from points at which the map is not defined.
MAX_FAILURES = 30


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
            if failures > MAX_FAILURES or last_good is x:
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
            if step <= MIN_STEP:
                return replace(best, iterations=count, outcome=Outcome.CYCLE)
            step = max(step / 2, MIN_STEP)
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
    return along > 0 and bool(np.max(np.abs(move) / scale) < MAX_JUMP)


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
