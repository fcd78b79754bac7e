"""Exact test error of given weights, for Gaussian tokens of finite dimension.

The attention matrices of student and teacher depend on a sentence only through the
projections ``u_l = U^T x_l/sqrt d`` on ``U = [Q*, Q]``, which are Gaussian with covariance
``sigma_l^2 G``, ``G = U^T U/d``. Given them, the rest of the sentence enters the squared
error through conditional means with a closed form (here for white tokens; `_colored_fields` is
for any Sigma_l),

    E[x_k . x_l/d | u] = delta_kl sigma_l^2 (d - rank U)/d + u_k^T G^{-1} u_l/d,
    E[x_k . p_l/d | u] = u_k^T G^{-1} U^T p_l/d^{3/2},

so the average over x in R^{L x d} is one over ``L (r + t)`` Gaussian variables. Terms of
order 1/d are kept: the result is the test error at this d, not its limit.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.datasets import Positions, TeacherWeights
from dotphase.finite_d.loss import Weights
from dotphase.model import Model, memory_check
from dotphase.model.spectrum import Spectrum
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.quadrature import Rule, gauss_hermite, sobol_rule

#: Maximum dimension of a product rule.
MAX_TENSOR_DIMS = 4
#: Order of a product rule in each dimension.
ORDER = 12
#: log2 of the number of Sobol points in higher dimensions.
LOG2_POINTS = 16
#: Eigenvalues of G below this multiple of the machine precision, relative to the largest, are zero
#: (Q may be parallel to Q*).
ZERO_FACTOR = 1e3


class Moments(NamedTuple):
    """Conditional means of ``x x^T/d`` and ``x p^T/d`` given the projections."""

    xx: Float[Array, "tokens tokens points"]
    xp: Float[Array, "tokens tokens points"]


def quadrature(model: Model, order: int = ORDER) -> Rule:
    """Return the quadrature rule for the test errors of a model.

    Unlike the integrands of the theory, these are smooth. In up to `MAX_TENSOR_DIMS` dimensions
    a product of Gauss-Hermite rules has a relative error of about 1e-5 for the paper's
    model; in more dimensions, scrambled Sobol points have one of about 1e-4.

    Examples
    --------
    >>> dp.custom_training.quadrature(dp.positional_semantic(), order=5).points.shape
    (4, 625)
    """
    check_dims(model)
    # Other metrics and hidden variables need not be smooth.
    return _rule(count_fields(model), order, smooth=model.loss is None and model.latent is None)


def count_fields(model: Model) -> int:
    """Return the number of normal variables behind the fields and the noise of a sentence."""
    return model.length * (model.student_rank + model.teacher_rank) + model.normals


def check_dims(model: Model) -> None:
    """Refuse a model whose test error does not fit into memory, before its students are trained."""
    if count_fields(model) > MAX_TENSOR_DIMS:
        memory_check.check_fields(model, 2**LOG2_POINTS)


@lru_cache(maxsize=16)
def _rule(dims: int, order: int, smooth: bool) -> Rule:
    if dims <= MAX_TENSOR_DIMS and smooth:
        return gauss_hermite(order, dims)
    return sobol_rule(LOG2_POINTS, dims, np.random.default_rng(2))


def attention_error(
    model: Model,
    weights: Weights,
    teacher_weights: TeacherWeights,
    positions: Positions,
    rule: Rule,
) -> Float[Array, ""]:
    """Return ``eps_g = E |T x - S z|^2/(d L)`` of a student.

    With ``T x - S z = (T - S) x - S p``, averaged over x at fixed projections:
    ``tr[(T-S) E[xx^T/d] (T-S)^T] - 2 tr[(T-S) E[xp^T/d] S^T] + tr[S p p^T S^T]/d``.

    Examples
    --------
    >>> import jax
    >>> model = dp.positional_semantic(omega=0.0)
    >>> training = dp.custom_training
    >>> positions = training.position_vectors(model, 40)
    >>> q, rule = jax.numpy.ones((40, 1)), training.quadrature(model)
    >>> bool(training.attention_error(model, q, q, 0 * positions, rule) < 1e-6)
    True
    """
    if not model.plain:
        return field_error(model, weights, teacher_weights, positions, rule)
    h, x, moments = teacher_and_student_fields(model, weights, teacher_weights, positions, rule)
    target, output = vmap_points(model.teacher)(h), vmap_points(model.student)(x)
    return _squared_error(target, output, moments, positions, rule) / model.length


def teacher_and_student_fields(
    model: Model,
    weights: Weights,
    teacher_weights: TeacherWeights,
    positions: Positions,
    rule: Rule,
) -> tuple[Float[Array, "tokens t points"], Float[Array, "tokens r points"], Moments]:
    """Return the fields of teacher and student at the points of the rule, with moments."""
    both = jnp.concatenate([teacher_weights, weights], axis=1)
    u, moments = _fields(model, both, positions, rule)
    means = (positions @ weights / np.sqrt(weights.shape[0]))[..., None]
    return u[:, : model.teacher_rank], u[:, model.teacher_rank :] + means, moments


def field_error(
    model: Model,
    weights: Weights,
    teacher_weights: TeacherWeights,
    directions: Positions,
    rule: Rule,
) -> Float[Array, ""]:
    """Return the mean of the model's own error over the fields of new sentences.

    It is exact for a loss or metric that depends on the fields alone. For attention on correlated
    tokens or tokens with means, products of tokens are replaced by their limits; the error is of
    order 1/d.
    """
    t, d = model.teacher_rank, weights.shape[0]
    both = jnp.concatenate([teacher_weights, weights], axis=1)
    no_positions = jnp.zeros((model.length, d), both.dtype)
    u, _ = _fields(model, both, no_positions, rule)
    k = model.length * both.shape[1]
    z = jnp.asarray(rule.points, both.dtype)[k : k + model.normals]
    if model.mixer is not None:
        u = jnp.einsum("lk,kip->lip", model.mixer.astype(u.dtype), u)
    h, x = u[:, :t], u[:, t:]
    projected = directions @ both / np.sqrt(d)
    loading = vmap_points(model.loading)(z).astype(u.dtype)
    x = x + jnp.einsum("ldp,dr->lrp", loading, projected[:, t:])
    if model.latent is not None:
        count = model.latent.directions
        h = h + jnp.einsum("ldp,dt->ltp", loading[:, -count:], projected[-count:, :t])
    errors = vmap_points(model.test_loss)(x, vmap_points(model.label)(h, z))
    return model.test_factor * jnp.dot(errors, jnp.asarray(rule.weights, errors.dtype))


def linear_error(
    model: Model, layer: Float[Array, "tokens tokens"], teacher_weights: TeacherWeights, rule: Rule
) -> Float[Array, ""]:
    """Return ``E |T x - W x|^2/(d L)`` of a linear layer across positions.

    Examples
    --------
    >>> import jax
    >>> model = dp.positional_semantic()
    >>> training = dp.custom_training
    >>> positions = training.position_vectors(model, 40)
    >>> layer, q = jax.numpy.full((2, 2), 0.5), jax.numpy.ones((40, 1))
    >>> bool(0.002 < training.linear_error(model, layer, q, training.quadrature(model)) < 0.02)
    True
    """
    no_positions = jnp.zeros((model.length, teacher_weights.shape[0]), teacher_weights.dtype)
    u, moments = _fields(model, teacher_weights, no_positions, rule)
    target = vmap_points(model.teacher)(u)
    output = jnp.broadcast_to(layer[..., None], target.shape)
    return _squared_error(target, output, moments, no_positions, rule) / model.length


def _fields(
    model: Model, both: Float[Array, "d k"], positions: Positions, rule: Rule
) -> tuple[Float[Array, "tokens k points"], Moments]:
    """Return projections ``u_l = sigma_l G^{1/2} zeta_l`` and the conditional moments."""
    if model.spectrum is not None:
        return _colored_fields(model, model.spectrum, both, positions, rule)
    d, k = both.shape
    sigma = jnp.asarray(model.sigma, both.dtype)
    zeta = jnp.asarray(rule.points, both.dtype)[: model.length * k].reshape(model.length, k, -1)
    values, vectors = jnp.linalg.eigh(jnp.matmul(both.T, both, precision="highest") / d)
    present = values > ZERO_FACTOR * np.finfo(both.dtype).eps * values[-1]
    safe_values = jnp.where(present, values, 1.0)
    root = (vectors * jnp.where(present, jnp.sqrt(safe_values), 0.0)) @ vectors.T
    inverse_root = (vectors * jnp.where(present, 1 / jnp.sqrt(safe_values), 0.0)) @ vectors.T
    projector = (vectors * present.astype(both.dtype)) @ vectors.T

    u = sigma[:, None, None] * jnp.einsum("ij,ljp->lip", root, zeta)
    scaled = sigma[:, None, None] * zeta
    orthogonal = jnp.diag(sigma**2) * (1 - jnp.sum(present) / d)
    xx = orthogonal[..., None] + jnp.einsum("kip,ij,ljp->klp", scaled, projector, scaled) / d
    projected = both.T @ positions.T / np.sqrt(d)
    xp = jnp.einsum("kip,ij,jl->klp", scaled, inverse_root, projected) / d
    return u, Moments(xx, xp)


def _colored_fields(
    model: Model, spectrum: Spectrum, both: Float[Array, "d k"], positions: Positions, rule: Rule
) -> tuple[Float[Array, "tokens k points"], Moments]:
    """Return `_fields` for tokens with covariances Sigma_l in their eigenbasis.

    ``u_l = G_l^{1/2} zeta_l`` with ``G_l = U^T Sigma_l U/d``, and with
    ``a_l = G_l^{-1} u_l``, ``D_kl = U^T Sigma_k Sigma_l U/d``:

        E[x_k . x_l/d | u] = delta_kl (tr Sigma_l - tr G_l^{-1} D_ll)/d + a_k^T D_kl a_l/d,
        E[x_k . p_l/d | u] = a_k^T U^T Sigma_k p_l/d^{3/2}.
    """
    d, k = both.shape
    length, dtype = model.length, both.dtype
    zeta = jnp.asarray(rule.points, dtype)[: length * k].reshape(length, k, -1)
    variances = jnp.broadcast_to(spectrum.along(d).astype(dtype), (length, d))
    scaled = jnp.asarray(model.rho, dtype)[:, None, None] * variances[:, :, None] * both
    exact = partial(jnp.einsum, precision="highest")
    values, vectors = jnp.linalg.eigh(exact("ldi,dj->lij", scaled, both) / d)
    present = values > ZERO_FACTOR * np.finfo(dtype).eps * values[:, -1:]
    safe_values = jnp.where(present, values, 1.0)

    def power(exponent: float) -> Float[Array, "tokens k k"]:
        return (vectors * jnp.where(present, safe_values**exponent, 0.0)[:, None]) @ vectors.mT

    u = jnp.einsum("lij,ljp->lip", power(0.5), zeta)
    a = jnp.einsum("lij,ljp->lip", power(-0.5), zeta)
    double = exact("kdi,ldj->klij", scaled, scaled) / d
    orthogonal = jnp.asarray(model.rho, dtype)
    orthogonal = orthogonal - jnp.einsum("lij,llji->l", power(-1.0), double) / d
    xx = jnp.diag(orthogonal)[..., None] + jnp.einsum("kip,klij,ljp->klp", a, double, a) / d
    projected = jnp.einsum("kdi,ld->kil", scaled, positions) / np.sqrt(d)
    return u, Moments(xx, jnp.einsum("kip,kil->klp", a, projected) / d)


def _squared_error(
    target: Float[Array, "tokens tokens points"],
    output: Float[Array, "tokens tokens points"],
    moments: Moments,
    positions: Positions,
    rule: Rule,
) -> Float[Array, ""]:
    """Return the mean of ``|T x - S z|^2/d`` over the points of the rule."""
    difference = target - output
    pp = positions @ positions.T / positions.shape[1]
    value = jnp.einsum("ikp,klp,ilp->p", difference, moments.xx, difference)
    value = value - 2 * jnp.einsum("ikp,klp,ilp->p", difference, moments.xp, output)
    value = value + jnp.einsum("ikp,kl,ilp->p", output, pp, output)
    return jnp.dot(value, jnp.asarray(rule.weights, value.dtype))
