"""Scrambled Sobol points, the same as those of ``scipy.stats.qmc.Sobol``, bit by bit.

Written out because to import `scipy.stats` takes as long as to solve a few points; SciPy's table of
direction numbers (Joe and Kuo, SIAM J. Sci. Comput. 30, 2635, 2008) is read where it lies, and
where it does not, SciPy itself makes the points. Scrambling is Matousek's (J. Complexity 14, 527,
1998): a random lower triangular matrix of bits on the direction numbers, and a random shift.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt32

#: Bits of a coordinate, as SciPy has them.
BITS = 30
#: Where SciPy keeps the direction numbers, and the dimensions that are enough for most.
TABLE, USUAL = "stats/_sobol_direction_numbers.npz", 64


def sobol_points(
    dims: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count dims"]:
    """The first `count` scrambled Sobol points in the unit cube; `count` is a power of two."""
    directions = _directions(max(dims, USUAL))
    if directions is None:
        from scipy.stats import qmc

        return np.asarray(qmc.Sobol(dims, scramble=True, rng=rng).random(count))
    own = rng.spawn(1)[0]
    powers = 2 ** np.arange(BITS, dtype=np.uint32)
    shift = own.integers(2, size=(dims, BITS), dtype=np.uint32) @ powers
    lower = np.tril(own.integers(2, size=(dims, BITS, BITS), dtype=np.uint32))
    scrambled = _scrambled(directions[:dims], lower | np.eye(BITS, dtype=np.uint32))
    points = np.empty((count, dims), np.uint32)
    points[0] = shift
    # In the order of Gray's code the second half is the first one backwards, with one bit changed.
    for bit in range(count.bit_length() - 1):
        half = 2**bit
        points[half : 2 * half] = points[half - 1 :: -1] ^ scrambled[:, bit]
    return points * 2.0**-BITS


def _scrambled(
    directions: UInt32[np.ndarray, "dims bits"], lower: UInt32[np.ndarray, "dims bits bits"]
) -> UInt32[np.ndarray, "dims bits"]:
    """Direction numbers times a matrix of bits, the highest bit first, modulo two."""
    places = np.arange(BITS - 1, -1, -1, dtype=np.uint32)
    digits = (directions[:, None, :] >> places[:, None]) & 1  # (dims, digit, direction)
    mixed = (lower @ digits) & 1
    return np.bitwise_or.reduce(mixed << places[:, None], axis=1)


@lru_cache(maxsize=4)
def _directions(dims: int) -> UInt32[np.ndarray, "dims bits"] | None:
    """Direction numbers by the recurrence of Bratley and Fox; None without a table of that size."""
    spec = find_spec("scipy")
    folder = Path(next(iter(spec.submodule_search_locations or [""]))) if spec else Path()
    try:
        with np.load(folder / TABLE, allow_pickle=False) as table:
            polynomials, initial = table["poly"][:dims], table["vinit"][:dims]
    except (OSError, KeyError, ValueError):
        return None
    if len(polynomials) < dims:
        return None
    numbers = np.ones((dims, BITS), np.uint64)
    for row, polynomial, first in zip(numbers[1:], polynomials[1:], initial[1:], strict=True):
        code = int(polynomial)
        degree = code.bit_length() - 1
        row[:degree] = first[:degree]
        taken = [k for k in range(1, degree + 1) if code >> (degree - k) & 1]
        for place in range(degree, BITS):
            value = int(row[place - degree])
            for k in taken:
                value ^= int(row[place - k]) << k
            row[place] = value
    return (numbers << np.arange(BITS - 1, -1, -1, dtype=np.uint64)).astype(np.uint32)
