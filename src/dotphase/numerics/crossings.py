"""Where curves that are known on a grid pass through zero.

Differences are taken so that what is looked for is a fall from positive to negative, and the last
one counts: beyond it the new order has settled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

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


def straight_root(x0: float, y0: float, x1: float, y1: float) -> float:
    """Where the straight line through two points is zero."""
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
    """Position of the `last_fall` and its standard error; NaN without one."""
    fall = last_fall(x, gap, slope)
    if fall is None:
        return float("nan"), float("nan")
    return fall.position, fall.stderr(noise, independent=independent)


def first_rise(x: Row, values: Row, after: float | None = None) -> float:
    """First position from `after` on at which a curve becomes positive; NaN without one.

    The curve is interpolated by a monotone cubic. If it is positive at the first point beyond
    `after`, it is extrapolated to the left, down to `after`.
    """
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
