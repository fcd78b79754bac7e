"""Points and weights of averages over standard normal variables.

Products of Gauss-Hermite rules (`gauss_hermite`) serve smooth integrands in few dimensions,
scrambled Sobol points (`normal_points`) all others.

In the averages of the theory the proximal map jumps: the integrands are discontinuous, and
Gauss-Hermite rules converge slowly. Sobol points with their antithetic images ``(+-xi, +-y)``
converge steadily; independent scrambles give the error of every average. If a symmetry makes the
integrands the same at a point and at its mirror image, ``(-xi, -y)`` or ``(xi, -y)``, one of them
is enough. `gaussian_blocks` arranges the points in blocks of equal size, so that one compiled
function serves any number of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from dotphase.numerics.sobol import sobol_points

#: Independent scrambles; their spread is the quadrature error.
N_SCRAMBLES = 8
#: Signs of (xi, y) in the antithetic images.
ANTITHETIC_SIGNS = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
#: log2 of the number of points in one block.
LOG2_BLOCK_SIZE = 11
#: log2 of the smallest number of points: one block whose points also represent mirror images.
MIN_QUADRATURE_LOG2 = LOG2_BLOCK_SIZE + 1


class Rule(NamedTuple):
    """Points and weights of an average over standard normal variables.

    Examples
    --------
    >>> dp.analysis.Rule(points=[[-1.0, 1.0]], weights=[0.5, 0.5]).weights
    [0.5, 0.5]
    """

    points: Float[np.ndarray, "dims points"]
    weights: Float[np.ndarray, " points"]


@lru_cache(maxsize=16)
def gauss_hermite(order: int, dims: int) -> Rule:
    """Product of Gauss-Hermite rules with `order` nodes in each of `dims` directions.

    Examples
    --------
    >>> rule = dp.analysis.gauss_hermite(8, 2)
    >>> float((rule.points[0] ** 2 @ rule.weights).round(9))
    1.0
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    grid = np.stack(np.meshgrid(*[nodes] * dims, indexing="ij")).reshape(dims, -1)
    each = np.stack(np.meshgrid(*[weights / weights.sum()] * dims, indexing="ij"))
    return Rule(grid, np.prod(each.reshape(dims, -1), axis=0))


def normal_points(
    dims: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "count dims"]:
    """Scrambled Sobol points, mapped to standard normal variables; `count` is a power of two."""
    uniform = sobol_points(dims, count, rng)
    # A scrambled coordinate can be exactly 0 in finite precision; ndtri would give -inf.
    return np.asarray(ndtri(np.clip(uniform, 2.0**-54, 1 - 2.0**-53)))


def sobol_rule(log2_points: int, dims: int, rng: np.random.Generator) -> Rule:
    """`normal_points` with equal weights."""
    count = 2**log2_points
    return Rule(normal_points(dims, count, rng).T, np.full(count, 1.0 / count))


@lru_cache(maxsize=32)
def gaussian_blocks(
    log2_points: int,
    student_dims: int,
    teacher_dims: int,
    seed: int,
    halved: bool = False,
    others: int = 0,
) -> Float[np.ndarray, "blocks scrambles points dims"]:
    """Standard normal points in blocks; the same seed gives the same points.

    Parameters
    ----------
    log2_points : int
        log2 of the total number of points, at least `MIN_QUADRATURE_LOG2`.
    student_dims, teacher_dims : int
        Dimensions of ``xi`` (L r) and of ``y`` (L t).
    seed : int
        Seed of the scrambles. A larger `log2_points` extends the same sequences.
    halved : bool
        True if every point also represents its mirror image: the images are ``(+-xi, y)`` only.
    others : int
        Number of further dimensions, whose signs change with those of ``y``.

    Returns
    -------
    array of shape (blocks, N_SCRAMBLES, points, student_dims + teacher_dims + others)
        Every image of a point lies in the same block and scramble as the point.
    """
    dims = student_dims + teacher_dims + others
    signs_of_images = ANTITHETIC_SIGNS[::2] if halved else ANTITHETIC_SIGNS
    blocks = 2 ** (log2_points - LOG2_BLOCK_SIZE) // (2 if halved else 1)
    per_block = 2**LOG2_BLOCK_SIZE // (N_SCRAMBLES * len(signs_of_images))
    base = np.empty((N_SCRAMBLES, blocks, per_block, dims))
    for scramble, child in enumerate(np.random.SeedSequence(seed).spawn(N_SCRAMBLES)):
        normal = normal_points(dims, blocks * per_block, np.random.default_rng(child))
        base[scramble] = normal.reshape(blocks, per_block, dims)
    signs = np.asarray(
        [[s] * student_dims + [u] * (teacher_dims + others) for s, u in signs_of_images]
    )
    images = base[:, :, None] * signs[None, None, :, None]
    points = images.reshape(N_SCRAMBLES, blocks, -1, dims).swapaxes(0, 1)
    points = np.ascontiguousarray(points)
    points.setflags(write=False)
    return points
