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
    """A fall through zero between two neighbours of a grid.

    Attributes
    ----------
    at : where
    left : index of the left neighbour
    share : part of the way from the left to the right neighbour, on the straight line
    slope : of the straight line between them
    bend : how far the place is from that on the straight line: the order of what interpolation
        does not know
    """

    at: float
    left: int
    share: float
    slope: float
    bend: float = 0.0

    def error(self, noise: Row, *, independent: bool = False) -> float:
        """Standard error of the place, from those of the difference on the grid.

        Errors of neighbours that come from the same random points go together, and the larger
        one counts; `independent` ones average out.
        """
        pair = noise[self.left : self.left + 2]
        spread = np.max(pair)
        if independent:
            spread = np.hypot((1 - self.share) * pair[0], self.share * pair[1])
        return float(spread / abs(self.slope))


def straight_root(x0: float, y0: float, x1: float, y1: float) -> float:
    """Where the straight line through two points is zero."""
    return float(x0 + (x1 - x0) * y0 / (y0 - y1))


def last_fall(x: Row, gap: Row, slope: Row | None = None) -> Crossing | None:
    """The last place where a difference falls from positive to negative; None if it does not.

    Parameters
    ----------
    x, gap : arrays
        Increasing grid, and the difference on it.
    slope : array, optional
        Its derivative, where it is known (that of a training loss is, at a fixed point): a
        cubic between two neighbours then follows it closely even on a coarse grid. Otherwise a
        straight line does.
    """
    changes = np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0))
    if changes.size == 0:
        return None
    left = int(changes[-1])
    pair = slice(left, left + 2)
    (x0, x1), (y0, y1) = x[pair], gap[pair]
    at = straight = straight_root(x0, y0, x1, y1)
    if slope is not None:
        roots = CubicHermiteSpline(x[pair], gap[pair], slope[pair]).roots(extrapolate=False)
        if not roots.size:
            return None
        at = float(roots[0])
    share, steepness = float(y0 / (y0 - y1)), float((y1 - y0) / (x1 - x0))
    return Crossing(at, left, share, steepness, abs(at - straight))


def first_rise(x: Row, values: Row, after: float | None = None) -> float:
    """First place from `after` on where a curve turns positive; NaN if it does not.

    Between the points of the grid the curve is a monotone cubic. Where it is positive at the
    first point beyond `after` already, it is extended to the left, no further than `after`.
    """
    good = np.isfinite(values)
    if after is not None:
        good &= x > after
    x, values = x[good], values[good]
    if x.size < 2 or not np.any(values > 0):
        return float("nan")
    curve = PchipInterpolator(x, values)
    if values[0] <= 0:
        roots = curve.roots(extrapolate=False)
        return float(roots[0]) if roots.size else float("nan")
    if after is None:
        return float("nan")
    slope = float(curve(x[0], 1))
    back = x[0] - values[0] / slope if slope > 0 else after
    return float(max(back, after))
