"""Test error of given weights, exactly, for Gaussian tokens of finite dimension.

The attention matrices of student and teacher depend on a sentence only through the
projections ``u_l = U^T x_l/sqrt d`` on ``U = [Q*, Q]``, which are Gaussian with covariance
``sigma_l^2 G``, ``G = U^T U/d``. Given them, the rest of the sentence enters the squared
error through conditional means that are known in closed form,

    E[x_k . x_l/d | u] = delta_kl sigma_l^2 (d - rank U)/d + u_k^T G^{-1} u_l/d,
    E[x_k . p_l/d | u] = u_k^T G^{-1} U^T p_l/d^{3/2},

so the average over x in R^{L x d} is one over ``L (r + t)`` Gaussian variables. Terms of
order 1/d are kept: the result is the test error at this d, not its limit.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.fields import gaussian_blocks
from dotphase.model import Model
from dotphase.prox import over_points

#: log2 of the number of Gaussian points. The integrand is smooth: see `gaussian_points`.
LOG2_POINTS = 14
#: Eigenvalues of G below this share of the largest, in units of the floating-point precision,
#: count as zero (Q may lie along Q*).
ZERO = 1e3


class Moments(NamedTuple):
    """Conditional means of ``x x^T/d`` and ``x p^T/d`` given the projections."""

    xx: Float[Array, "tokens tokens points"]
    xp: Float[Array, "tokens tokens points"]


def gaussian_points(model: Model, seed: int = 0) -> Float[np.ndarray, "dims points"]:
    """Standard normal points for `attention_error`: antithetic scrambled Sobol points.

    On 2^14 of them the error of the paper's model is known to about one part in 10^4.
    """
    dims = model.length * model.student_rank, model.length * model.teacher_rank
    blocks = gaussian_blocks(LOG2_POINTS, *dims, seed)
    return blocks.reshape(-1, sum(dims)).T


def attention_error(
    model: Model,
    weights: Float[Array, "d r"],
    teacher_weights: Float[Array, "d t"],
    positions: Float[Array, "tokens d"],
    points: Float[Array, "dims points"],
) -> Float[Array, ""]:
    """``eps_g = E |T x - S z|^2/(d L)`` of a student with the given weights.

    With ``T x - S z = (T - S) x - S p``, averaged over x at fixed projections:
    ``tr[(T-S) E[xx^T/d] (T-S)^T] - 2 tr[(T-S) E[xp^T/d] S^T] + tr[S p p^T S^T]/d``.
    """
    t, d = model.teacher_rank, weights.shape[0]
    both = jnp.concatenate([teacher_weights, weights], axis=1)
    u, moments = _fields(model, both, positions, points)
    means = (positions @ weights / np.sqrt(d))[..., None]
    target = over_points(model.teacher)(u[:, :t])
    answer = over_points(model.student)(u[:, t:] + means)
    return _error(target, answer, moments, positions) / model.length


def linear_error(
    model: Model,
    layer: Float[Array, "tokens tokens"],
    teacher_weights: Float[Array, "d t"],
    points: Float[Array, "dims points"],
) -> Float[Array, ""]:
    """``E |T x - W x|^2/(d L)`` of a linear layer across positions."""
    nowhere = jnp.zeros((model.length, teacher_weights.shape[0]), teacher_weights.dtype)
    u, moments = _fields(model, teacher_weights, nowhere, points)
    target = over_points(model.teacher)(u)
    answer = jnp.broadcast_to(layer[..., None], target.shape)
    return _error(target, answer, moments, nowhere) / model.length


def _fields(
    model: Model,
    both: Float[Array, "d k"],
    positions: Float[Array, "tokens d"],
    points: Float[Array, "dims points"],
) -> tuple[Float[Array, "tokens k points"], Moments]:
    """Projections ``u_l = sigma_l G^{1/2} zeta_l`` and the conditional moments."""
    d, k = both.shape
    sigma = jnp.asarray(model.sigma, both.dtype)
    zeta = jnp.asarray(points, both.dtype)[: model.length * k].reshape(model.length, k, -1)
    values, vectors = jnp.linalg.eigh(jnp.matmul(both.T, both, precision="highest") / d)
    present = values > ZERO * jnp.finfo(both.dtype).eps * values[-1]
    size = jnp.where(present, values, 1.0)
    root = (vectors * jnp.where(present, jnp.sqrt(size), 0.0)) @ vectors.T
    inverse_root = (vectors * jnp.where(present, 1 / jnp.sqrt(size), 0.0)) @ vectors.T
    seen = (vectors * present.astype(both.dtype)) @ vectors.T

    u = sigma[:, None, None] * jnp.einsum("ij,ljp->lip", root, zeta)
    scaled = sigma[:, None, None] * zeta
    rest = jnp.diag(sigma**2) * (1 - jnp.sum(present) / d)
    xx = rest[..., None] + jnp.einsum("kip,ij,ljp->klp", scaled, seen, scaled) / d
    along = both.T @ positions.T / np.sqrt(d)
    xp = jnp.einsum("kip,ij,jl->klp", scaled, inverse_root, along) / d
    return u, Moments(xx, xp)


def _error(
    target: Float[Array, "tokens tokens points"],
    answer: Float[Array, "tokens tokens points"],
    moments: Moments,
    positions: Float[Array, "tokens d"],
) -> Float[Array, ""]:
    miss = target - answer
    pp = positions @ positions.T / positions.shape[1]
    value = jnp.einsum("ikp,klp,ilp->p", miss, moments.xx, miss)
    value = value - 2 * jnp.einsum("ikp,klp,ilp->p", miss, moments.xp, answer)
    return jnp.mean(value + jnp.einsum("ikp,kl,ilp->p", answer, pp, answer))
