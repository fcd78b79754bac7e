"""Crossings read off curves whose slopes are known."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicHermiteSpline

Row = Float[np.ndarray, " alphas"]


def last_crossing(alpha: Row, gap: Row, slope: Row) -> tuple[float, int] | None:
    """Last place where a difference falls from positive to negative, and the cell it is in.

    The training loss of a fixed point has a known derivative in alpha, so that a cubic
    between two neighbours follows the difference closely even on a coarse grid.

    Returns
    -------
    (alpha, index of the left neighbour), or None if there is no such place
    """
    changes = np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0))
    if changes.size == 0:
        return None
    left = int(changes[-1])
    pair = slice(left, left + 2)
    roots = CubicHermiteSpline(alpha[pair], gap[pair], slope[pair]).roots(extrapolate=False)
    return (float(roots[0]), left) if roots.size else None
