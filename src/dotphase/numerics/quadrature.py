"""Points and weights of averages over standard normal variables.

Smooth integrands in few dimensions have products of Gauss-Hermite rules (`gauss_hermite`),
others scrambled Sobol points (`normal_points`).

In the averages of the theory the proximal map jumps, so the integrands are discontinuous and
Gauss-Hermite rules converge slowly. Sobol points completed by their antithetic images
``(+-xi, +-y)`` converge steadily; independent scrambles give the error of every average. Where a
symmetry makes the integrands the same at a point and at its mirror image, ``(-xi, -y)`` or
``(xi, -y)``, one of the two is enough. `gaussian_blocks` lays the points out in blocks of equal
size, so that one compiled function serves any number of them.
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
#: log2 of the number of points in one block, and of the smallest quadrature there is: a block
#: of points that stand for their mirror images too.
LOG2_BLOCK_SIZE = 11
MIN_QUADRATURE_LOG2 = LOG2_BLOCK_SIZE + 1


class Rule(NamedTuple):
    """Points and weights of an average over standard normal variables."""

    points: Float[np.ndarray, "dims points"]
    weights: Float[np.ndarray, " points"]


@lru_cache(maxsize=16)
def gauss_hermite(order: int, dims: int) -> Rule:
    """The product of Gauss-Hermite rules with `order` nodes in each of `dims` directions."""
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
    """Standard normal points in blocks, the same seed always giving the same points.

    Parameters
    ----------
    log2_points : int
        log2 of the number of points in all, at least `MIN_QUADRATURE_LOG2`.
    student_dims, teacher_dims : int
        Dimensions of ``xi`` (L r) and of ``y`` (L t).
    seed : int
        Seed of the scrambles. A larger `log2_points` extends the same sequences.
    halved : bool
        Whether every point stands for its mirror image too; only ``(+-xi, y)`` are kept then.
    others : int
        More dimensions, whose signs change with those of ``y``.

    Returns
    -------
    array of shape (blocks, N_SCRAMBLES, points, student_dims + teacher_dims + others)
        Every image of a point lies in the same block and scramble as the point.
    """
    dims = student_dims + teacher_dims + others
    kept = ANTITHETIC_SIGNS[::2] if halved else ANTITHETIC_SIGNS
    blocks = 2 ** (log2_points - LOG2_BLOCK_SIZE) // (2 if halved else 1)
    per_block = 2**LOG2_BLOCK_SIZE // (N_SCRAMBLES * len(kept))
    base = np.empty((N_SCRAMBLES, blocks, per_block, dims))
    for scramble, child in enumerate(np.random.SeedSequence(seed).spawn(N_SCRAMBLES)):
        normal = normal_points(dims, blocks * per_block, np.random.default_rng(child))
        base[scramble] = normal.reshape(blocks, per_block, dims)
    signs = np.asarray([[s] * student_dims + [u] * (teacher_dims + others) for s, u in kept])
    images = base[:, :, None] * signs[None, None, :, None]
    points = images.reshape(N_SCRAMBLES, blocks, -1, dims).swapaxes(0, 1)
    points = np.ascontiguousarray(points)
    points.setflags(write=False)
    return points
