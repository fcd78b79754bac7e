"""Roots of curves: of functions (`find_root`), and of curves that are known on a grid.

On a grid, a crossing is the last change of a difference from positive to negative (`last_fall`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

#: Change of a value, in standard errors, that determines a secant.
SECANT_SIGNIFICANCE = 5.0

Row = Float[np.ndarray, " grid"]


@dataclass(frozen=True)
class Crossing:
    """A change of sign, from positive to negative, between two neighbors of a grid.

    Attributes
    ----------
    position : interpolated root
    left : index of the left neighbor
    fraction : position of the root of the straight line, from 0 (left) to 1 (right neighbor)
    slope : slope of the straight line
    interpolation_error : distance between the root and that of the straight line, the order of
        magnitude of the error of the interpolation
    """

    position: float
    left: int
    fraction: float
    slope: float
    interpolation_error: float = 0.0

    def stderr(self, noise: Row, *, independent: bool = False) -> float:
        """Standard error of the position, from those of the difference on the grid.

        Errors of neighbors on the same random points are correlated, and the larger one counts;
        `independent` errors average out.
        """
        pair = noise[self.left : self.left + 2]
        spread = np.max(pair)
        if independent:
            spread = np.hypot((1 - self.fraction) * pair[0], self.fraction * pair[1])
        return float(spread / abs(self.slope))


@dataclass(frozen=True)
class Sample:
    """Value of a noisy function at one position.

    Attributes
    ----------
    value, stderr : the value and its standard error
    slope : the derivative, if it is known
    """

    value: float
    stderr: float
    slope: float | None = None


@dataclass(frozen=True)
class Root:
    """Position of a root, its standard error, and the slope of the function."""

    position: float
    stderr: float
    slope: float


def find_root(
    function: Callable[[float], Sample | None],
    position: float,
    slope: float,
    bounds: tuple[float, float],
    *,
    rtol: float = 0.0,
    settled: float = 0.0,
    max_steps: int = 8,
) -> Root | None:
    """Find the root of a smooth noisy function with Newton steps.

    Parameters
    ----------
    function : callable
        The sample at a position; None where the function does not exist, which ends the search.
    position, slope : float
        First position, and the slope to use where samples have none. A secant over a change of
        the value well above its error replaces it.
    bounds : tuple of float
        Positions are kept between these two.
    rtol, settled : float
        The search ends at a step below this fraction of the position, or of its standard error.
    """
    low, high = sorted(bounds)
    position = min(max(position, low), high)
    root: Root | None = None
    previous: tuple[float, Sample] | None = None
    for _ in range(max_steps):
        sample = function(position)
        if sample is None:
            return None
        if sample.slope is not None:
            slope = sample.slope
        elif previous is not None:
            slope = _secant(slope, *previous, position, sample)
        advanced = float(np.clip(position - sample.value / slope, low, high))
        root = Root(advanced, sample.stderr / abs(slope), slope)
        if abs(advanced - position) <= max(rtol * abs(position), settled * root.stderr):
            break
        previous, position = (position, sample), advanced
    return root


def _secant(slope: float, x0: float, sample0: Sample, x1: float, sample1: Sample) -> float:
    """The secant slope if it is precise and near the last slope, else the last slope."""
    change = sample1.value - sample0.value
    if abs(change) < SECANT_SIGNIFICANCE * max(sample0.stderr, sample1.stderr):
        return slope
    secant = change / (x1 - x0)
    return secant if 0.25 < secant / slope < 4.0 else slope


def straight_root(x0: float, y0: float, x1: float, y1: float) -> float:
    """Root of the straight line through two points."""
    return float(x0 + (x1 - x0) * y0 / (y0 - y1))


def last_fall(x: Row, gap: Row, slope: Row | None = None) -> Crossing | None:
    """The last change of a difference from positive to negative; None without one.

    Parameters
    ----------
    x, gap : arrays
        Increasing grid, and the difference on it.
    slope : array, optional
        Derivative of the difference. With it the interpolation is cubic, which is precise on a
        coarse grid; without it, linear.
    """
    # SciPy's interpolation takes a quarter of a second to import, and a solve does without it.
    from scipy.interpolate import CubicHermiteSpline

    changes = np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0))
    if changes.size == 0:
        return None
    left = int(changes[-1])
    pair = slice(left, left + 2)
    (x0, x1), (y0, y1) = x[pair], gap[pair]
    position = straight = straight_root(x0, y0, x1, y1)
    if slope is not None:
        roots = CubicHermiteSpline(x[pair], gap[pair], slope[pair]).roots(extrapolate=False)
        if not roots.size:
            return None
        position = float(roots[0])
    fraction, steepness = float(y0 / (y0 - y1)), float((y1 - y0) / (x1 - x0))
    return Crossing(position, left, fraction, steepness, abs(position - straight))


def locate_fall(
    x: Row, gap: Row, noise: Row, slope: Row | None = None, *, independent: bool = False
) -> tuple[float, float]:
    """Position of the `last_fall` and its standard error; NaN without one.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> dp.analysis.locate_fall(x, np.array([2.0, 1.0, -1.0]), np.full(3, 0.1))
    (2.5, 0.05)
    """
    fall = last_fall(x, gap, slope)
    if fall is None:
        return float("nan"), float("nan")
    return fall.position, fall.stderr(noise, independent=independent)


def first_rise(x: Row, values: Row, after: float | None = None) -> float:
    """First position from `after` on at which a curve becomes positive; NaN without one.

    The curve is interpolated by a monotone cubic. If it is positive at the first point beyond
    `after`, it is extrapolated to the left, down to `after`.

    Examples
    --------
    >>> import numpy as np
    >>> dp.analysis.first_rise(np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 1.0]))
    2.0
    """
    from scipy.interpolate import PchipInterpolator

    valid = np.isfinite(values)
    if after is not None:
        valid &= x > after
    x, values = x[valid], values[valid]
    if x.size < 2 or not np.any(values > 0):
        return float("nan")
    curve = PchipInterpolator(x, values)
    if values[0] <= 0:
        roots = curve.roots(extrapolate=False)
        return float(roots[0]) if roots.size else float("nan")
    if after is None:
        return float("nan")
    slope = float(curve(x[0], 1))
    extrapolated = x[0] - values[0] / slope if slope > 0 else after
    return float(max(extrapolated, after))
