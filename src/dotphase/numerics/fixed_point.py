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
    quadrature_share : residual at which Newton steps stop, too, in quadrature errors of the map

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
    quadrature_share: float = 0.0

    def __post_init__(self) -> None:
        for name in ("tolerance", "floor", "near", "quadrature_share"):
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
    search = _Search(start, scale, admissible, settings)
    for _ in range(settings.max_steps):
        result = search.update(function(search.x))
        if result is not None:
            return result
    return search.result_at_limit()


class _Search:
    """State of `fixed_point`: the next point to evaluate and the history of the iteration."""

    def __init__(
        self,
        start: Vector,
        scale: Callable[[Vector], Vector],
        admissible: Callable[[Vector], bool],
        settings: Iteration,
    ) -> None:
        self.scale, self.admissible, self.settings = scale, admissible, settings
        self.x = self.last_usable = start
        self.step = settings.step
        self.count = self.without_progress = self.failures = 0
        self.best: FixedPoint | None = None
        self.previous: tuple[Vector, Vector, float] | None = None
        self.accelerated = False
        self.forget()

    def forget(self) -> None:
        """Forget the past points, after which acceleration starts again."""
        self.xs: list[Vector] = []
        self.residuals: list[Vector] = []

    def update(self, image: Vector) -> FixedPoint | None:
        """Choose the next point from ``F(x)``; the result if the iteration has ended."""
        self.count += 1
        x, settings = self.x, self.settings
        if not (np.all(np.isfinite(image)) and self.admissible(image)):
            return self.step_back()
        residual = image - x
        size = float(np.max(np.abs(residual) / self.scale(x)))
        best = self.record(FixedPoint(x, image, size, self.count, Outcome.STEPS), residual)
        if size <= settings.tolerance:
            return FixedPoint(x, image, size, self.count, Outcome.CONVERGED)
        if self.accelerated and self.previous is not None and size > 1.5 * self.previous[2]:
            self.forget()
            self.x = self.previous[0] + self.step * self.previous[1]
            self.previous, self.accelerated = None, False
            return None
        if self.without_progress >= PATIENCE:
            if best.residual <= settings.floor:
                return replace(best, iterations=self.count, outcome=Outcome.NOISE_FLOOR)
            if self.step <= MIN_STEP:
                return replace(best, iterations=self.count, outcome=Outcome.CYCLE)
            self.step = max(self.step / 2, MIN_STEP)
            self.without_progress = 0
            self.forget()
            x, residual, size = best.x, best.image - best.x, best.residual
        self.last_usable = x
        self.previous = (x, residual, size)
        self.x = self.propose(x, residual, size)
        return None

    def step_back(self) -> FixedPoint | None:
        """Go halfway back to the last point with a usable image; the result if that fails."""
        self.failures += 1
        if self.failures > MAX_FAILURES or self.last_usable is self.x:
            infinite = FixedPoint(self.x, self.x, float("inf"), self.count, Outcome.LEFT_DOMAIN)
            last = self.best or infinite
            return replace(last, iterations=self.count, outcome=Outcome.LEFT_DOMAIN)
        self.x = (self.x + self.last_usable) / 2
        self.forget()
        self.accelerated = False
        return None

    def record(self, point: FixedPoint, residual: Vector) -> FixedPoint:
        """Count the evaluations without progress, and return the best point."""
        scale, size, best = self.scale(point.x), point.residual, self.best
        # Steady motion is progress, too: the residual grows on the way out of the neighborhood of a
        # fixed point that repels.
        drifts = self.previous is not None and _cosine(residual, self.previous[1], scale) > 0.5
        if best is None or size < 0.9 * best.residual or (drifts and size > self.settings.floor):
            self.without_progress = 0
        else:
            self.without_progress += 1
        if best is None or size < best.residual:
            best = point
        self.best = best
        return best

    def propose(self, x: Vector, residual: Vector, size: float) -> Vector:
        """The next point: accelerated if that is safe, damped otherwise."""
        depth, scale = self.settings.anderson_depth, self.scale(x)
        self.xs.append(x)
        self.residuals.append(residual)
        del self.xs[: -depth - 1], self.residuals[: -depth - 1]
        self.accelerated = False
        if depth and len(self.xs) > 1 and size < self.settings.near:
            jump = _anderson(self.xs, self.residuals, scale)
            if _acceptable(jump - x, residual, scale) and self.admissible(jump):
                self.accelerated = True
                return jump
        return x + self.step * residual

    def result_at_limit(self) -> FixedPoint:
        """The result after the largest number of evaluations."""
        assert self.best is not None
        if self.best.residual <= self.settings.floor:
            steps = self.settings.max_steps
            return replace(self.best, iterations=steps, outcome=Outcome.NOISE_FLOOR)
        return self.best


def _acceptable(move: Vector, residual: Vector, scale: Vector) -> bool:
    """True if an accelerated move is short and does not oppose the plain iteration.

    A move against the residual leads to a fixed point that the iteration is leaving.
    """
    product = float(np.sum(move * residual / scale**2))
    return product > 0 and bool(np.max(np.abs(move) / scale) < MAX_JUMP)


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
