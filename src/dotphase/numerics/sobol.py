"""Scrambled Sobol points, bit by bit equal to those of ``scipy.stats.qmc.Sobol``.

They have an implementation of their own because the import of `scipy.stats` takes as long as the
solution of several points. The direction numbers (Joe and Kuo, SIAM J. Sci. Comput. 30, 2635, 2008)
are read from SciPy's file; without this file SciPy makes the points. Scrambling is Matousek's (J.
Complexity 14, 527, 1998): a random lower triangular matrix of bits on the direction numbers, and a
random shift.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt32

#: Bits of a coordinate, as in SciPy.
BITS = 30
#: SciPy's file of direction numbers, and the number of dimensions that is computed at least.
TABLE, MIN_DIMS = "stats/_sobol_direction_numbers.npz", 64


def sobol_points(
    dims: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count dims"]:
    """The first `count` scrambled Sobol points in the unit cube; `count` is a power of two."""
    directions = _directions(max(dims, MIN_DIMS))
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
    # In the order of the Gray code the second half is the reversed first half with one bit changed.
    for bit in range(count.bit_length() - 1):
        half = 2**bit
        points[half : 2 * half] = points[half - 1 :: -1] ^ scrambled[:, bit]
    return points * 2.0**-BITS


def _scrambled(
    directions: UInt32[np.ndarray, "dims bits"], lower: UInt32[np.ndarray, "dims bits bits"]
) -> UInt32[np.ndarray, "dims bits"]:
    """Multiply direction numbers by a matrix of bits, the highest bit first, modulo two."""
    positions = np.arange(BITS - 1, -1, -1, dtype=np.uint32)
    digits = (directions[:, None, :] >> positions[:, None]) & 1  # (dims, digit, direction)
    mixed = (lower @ digits) & 1
    return np.bitwise_or.reduce(mixed << positions[:, None], axis=1)


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
        terms = [k for k in range(1, degree + 1) if code >> (degree - k) & 1]
        for index in range(degree, BITS):
            value = int(row[index - degree])
            for k in terms:
                value ^= int(row[index - k]) << k
            row[index] = value
    return (numbers << np.arange(BITS - 1, -1, -1, dtype=np.uint64)).astype(np.uint32)
