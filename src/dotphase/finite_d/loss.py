"""Exact training loss from a few numbers per sentence.

With ``z = x + p`` the loss of a sentence depends on its tokens only through the
projections ``X = z Q/sqrt d`` and three quantities independent of Q,

    B = T x z^T/d,   C = z z^T/d,   c = |T x|^2/d,
    ell(X) = |T x - S(X) z|^2/(2d) = c/2 - tr(B S^T) + 1/2 tr(S C S^T),   S = S(X).

They are computed once. A gradient then costs two products with the (n L) x d matrix z, and
a product with the Hessian costs two more; no other operation has size n L d. This is the loss at
finite d, not its limit. A model with its own loss needs the label of every sentence instead.

A loss with kinks has no gradient there. Training then minimizes its Moreau envelope,
``min_u loss(u) + |X - u|^2/(2 s)`` with a small s, which is smooth and lower by at most s |g|^2/2.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.datasets import Dataset, token_positions
from dotphase.model import Model
from dotphase.model.derivatives import channel_loss, has_closed_form
from dotphase.numerics.attention_derivatives import Rows, tied_attention_derivatives
from dotphase.numerics.linalg import UNROLL_LIMIT, Entries, dot, parts, total
from dotphase.numerics.proximal_map import ExplicitProx, vmap_points
from dotphase.numerics.softmax_derivatives import Row, softmax_derivatives
from dotphase.numerics.taylor import Derivatives, differentiate

Weights = Float[Array, "d r"]

#: Width s of the envelope of a loss with kinks.
SMOOTHING = 1e-3


class Form(NamedTuple):
    """Quadratic form of a sentence's loss in its attention matrix S.

    The constant c makes the loss a square, which is never negative.
    """

    B: Float[Array, "tokens tokens *n"]
    C: Float[Array, "tokens tokens *n"]
    c: Float[Array, " *n"]


class Reduced(NamedTuple):
    """Data set reduced to the numbers in the training loss."""

    z: Float[Array, "n tokens d"]  #: tokens with their positions added
    form: Any  #: B, C and c of every sentence, or its label; sentences on the last axis
    used: Float[Array, " n"]  #: one for sentences, zero for padding


def reduce(model: Model, data: Dataset) -> Reduced:
    """Compute z and the quadratic forms, or the labels, of all sentences.

    Examples
    --------
    >>> model, training = dp.positional_semantic(), dp.custom_training
    >>> data = dp.sample(model, d=40, n=80, key=0, dtype="float32")
    >>> training.reduce(model, data).used.shape
    (80,)
    """
    x, p = data.tokens, token_positions(model, data)
    n, _, d = x.shape
    h = project(x, data.teacher_weights)
    target = vmap_points(model.label)(h, data.noise.T)
    if model.loss is not None:
        return Reduced(x + p, target, jnp.ones(n, x.dtype))
    xx = token_products(x)
    xp = project(x, p.T) / jnp.sqrt(d).astype(x.dtype)
    pp = (p @ p.T / d)[..., None]
    return Reduced(x + p, form_of(target, xx, xp, pp), jnp.ones(n, x.dtype))


def form_of(
    target: Float[Array, "tokens tokens n"],
    xx: Float[Array, "tokens tokens n"],
    xp: Float[Array, "tokens tokens n"],
    pp: Float[Array, "tokens tokens 1"],
) -> Form:
    """Return the forms of sentences with ``x x^T/d``, ``x p^T/d`` and ``p p^T/d``."""
    xz = xx + xp
    return Form(
        B=jnp.einsum("ikn,kln->iln", target, xz),
        C=xz + xp.swapaxes(0, 1) + pp,
        c=jnp.einsum("ikn,kln,iln->n", target, xx, target),
    )


def limit_form(model: Model, target: Float[Array, "tokens tokens"]) -> Form:
    """Return the form of a sentence for large d, where ``x_k . x_l/d -> delta_kl rho_l``."""
    rho = jnp.asarray(model.rho)
    return Form(B=target * rho, C=jnp.diag(rho), c=jnp.sum(target * target * rho))


def token_products(x: Float[Array, "n tokens d"]) -> Float[Array, "tokens tokens n"]:
    """Return ``x x^T/d`` of every sentence.

    Examples
    --------
    >>> data = dp.sample(dp.positional_semantic(), d=40, n=80, key=0, dtype="float32")
    >>> dp.custom_training.token_products(data.tokens).shape
    (2, 2, 80)
    """
    _, length, d = x.shape
    # One pair of tokens at a time: a batch of tiny matrix products is ten times slower.
    pair = {
        (k, l): jnp.sum(x[:, k] * x[:, l], axis=-1) / d for k in range(length) for l in range(k + 1)
    }
    rows = [[pair[max(k, l), min(k, l)] for l in range(length)] for k in range(length)]
    return jnp.stack([jnp.stack(row) for row in rows])


def project(
    z: Float[Array, "n tokens d"], weights: Float[Array, "d k"]
) -> Float[Array, "tokens k n"]:
    """Return ``z Q/sqrt d`` of every sentence, sentences on the last axis.

    Examples
    --------
    >>> data = dp.sample(dp.positional_semantic(), d=40, n=80, key=0, dtype="float32")
    >>> dp.custom_training.project(data.tokens, data.teacher_weights).shape
    (2, 1, 80)
    """
    n, length, d = z.shape
    flat = jnp.matmul(z.reshape(n * length, d), weights, precision="highest")
    return jnp.moveaxis(flat.reshape(n, length, -1), 0, -1) / np.sqrt(d)


def collect(
    z: Float[Array, "n tokens d"], force: Float[Array, "tokens k n"]
) -> Float[Array, "d k"]:
    """Return ``sum_mu z_mu^T g_mu/sqrt d``, the transpose of `project`."""
    n, length, d = z.shape
    rows = jnp.moveaxis(force, -1, 0).reshape(n * length, -1)
    # As (g^T z)^T: a compiled z^T g runs along columns and is five times slower.
    return jnp.matmul(rows.T, z.reshape(n * length, d), precision="highest").T / np.sqrt(d)


def sentence_loss(model: Model, x: Float[Array, "tokens r"], form: Any) -> Float[Array, ""]:
    """Return ``ell(X)`` of one sentence."""
    if model.loss is not None:
        return model.energy(x, form)
    s = model.student(x)
    if len(s) > UNROLL_LIMIT:
        return 0.5 * form.c + _all_rows(s, form.B, form.C).value
    rows, B, C = ([parts(row) for row in parts(matrix)] for matrix in (s, form.B, form.C))
    value = 0.5 * form.c
    for row, target in zip(rows, B, strict=True):
        # C is symmetric.
        product = [dot(row, column) for column in C]
        value = value - dot(row, target) + 0.5 * dot(row, product)
    return value


def sentence_derivatives(model: Model) -> Callable[[Entries, Any], Derivatives]:
    """Return ``(X, form) -> Derivatives`` of ``ell(X)``, tokens and rank flattened.

    Models without a closed form are differentiated automatically.
    """
    if model.loss is not None:
        return channel_loss(model, None)

    def derivatives(x: Entries, form: Form) -> Derivatives:
        return differentiate(lambda y: sentence_loss(model, y.reshape(model.length, -1), form), x)

    is_closed = has_closed_form(model.student, model.length, model.student_rank)
    return softmax_loss if is_closed else derivatives


def softmax_loss(x: Entries, form: Form) -> Derivatives:
    """Return the derivatives of ``ell(X)`` for ``S = softmax(X X^T)``."""
    B, C, c = form
    if len(x) > UNROLL_LIMIT:
        derivatives = tied_attention_derivatives(x, len(B), lambda S: _all_rows(S, B, C))
        return derivatives._replace(value=derivatives.value + 0.5 * c)
    tokens = range(len(B))
    b, rows = ([parts(row) for row in parts(matrix)] for matrix in (B, C))
    curvature = {(j, k): rows[j][k] for j in tokens for k in tokens if j <= k}

    def row(i: int, s: Sequence[Array]) -> Row:
        curved = [dot(rows[j], s) for j in tokens]
        slope = [curved[j] - b[i][j] for j in tokens]
        value = total([s[j] * (0.5 * curved[j] - b[i][j]) for j in tokens])
        return Row(value, slope, curved, curvature)

    derivatives = softmax_derivatives(x, len(B), row)
    return derivatives._replace(value=derivatives.value + 0.5 * c)


def _all_rows(
    S: Float[Array, "tokens tokens"],
    B: Float[Array, "tokens tokens"],
    C: Float[Array, "tokens tokens"],
) -> Rows:
    curved = S @ C
    return Rows(jnp.sum(S * (0.5 * curved - B)), curved - B, curved, C)


def sentence_losses(
    model: Model, reduced: Reduced, x: Float[Array, "tokens r n"]
) -> Float[Array, " n"]:
    """Return ``ell(X_mu)`` of every sentence."""
    return vmap_points(partial(sentence_loss, model))(x, reduced.form)


def data_loss(model: Model, reduced: Reduced, x: Float[Array, "tokens r n"]) -> Float[Array, ""]:
    """Return ``sum_mu ell(X_mu)``, or that of the envelope for a loss with kinks."""
    if model.proximal is not None:
        losses = vmap_points(_envelope(model))(x.reshape(-1, x.shape[-1]), reduced.form)
    else:
        losses = sentence_losses(model, reduced, x)
    return jnp.sum(reduced.used * losses)


def _envelope(model: Model) -> Callable[[Array, Any], Array]:
    """Return the Moreau envelope of a sentence's loss, fields flattened.

    Its gradient is ``(X - prox(X))/s``.
    """
    explicit = channel_loss(model, None)
    assert isinstance(explicit, ExplicitProx)

    def prox(x: Array, form: Any) -> Array:
        return explicit.minimizer(x, SMOOTHING * jnp.eye(len(x), dtype=x.dtype), form)

    @jax.custom_jvp
    def envelope(x: Array, form: Any) -> Array:
        u = prox(x, form)
        fields = u.reshape(model.length, -1)
        return model.energy(fields, form) + jnp.sum((x - u) ** 2) / (2 * SMOOTHING)

    @envelope.defjvp
    def directional_derivative(primals: Any, tangents: Any) -> tuple[Array, Array]:
        x, form = primals
        return envelope(x, form), jnp.dot((x - prox(x, form)) / SMOOTHING, tangents[0])

    return envelope


def training_loss(
    model: Model, reduced: Reduced, weights: Weights, x: Float[Array, "tokens r n"]
) -> Float[Array, ""]:
    """Return ``sum_mu ell + (ridge/2) |Q|^2`` of weights Q with projections X.

    This needs no product with the tokens: along a line ``Q + t P`` the projections are
    ``X + t Y``, and any t costs n numbers.
    """
    return data_loss(model, reduced, x) + 0.5 * model.ridge * jnp.sum(weights**2)


def exact_loss(model: Model, reduced: Reduced, weights: Weights) -> Float[Array, ""]:
    """Return the training loss without smoothing."""
    losses = sentence_losses(model, reduced, project(reduced.z, weights))
    return jnp.sum(reduced.used * losses) + 0.5 * model.ridge * jnp.sum(weights**2)


def value_and_gradient(
    model: Model, reduced: Reduced, weights: Weights
) -> tuple[Float[Array, ""], Weights]:
    """Return the training loss and its gradient in Q, with two products with the tokens.

    Examples
    --------
    >>> model, training = dp.positional_semantic(), dp.custom_training
    >>> data = dp.sample(model, d=40, n=80, key=0, dtype="float32")
    >>> reduced = training.reduce(model, data)
    >>> loss, gradient = training.value_and_gradient(model, reduced, data.teacher_weights)
    >>> gradient.shape
    (40, 1)
    """
    x = project(reduced.z, weights)
    slopes = jax.value_and_grad(lambda q, y: training_loss(model, reduced, q, y), (0, 1))
    value, (direct, force) = slopes(weights, x)
    return value, direct + collect(reduced.z, force)


def hessian_product(
    model: Model, reduced: Reduced, x: Float[Array, "tokens r n"], direction: Weights
) -> Weights:
    """Return the Hessian of the training loss times a direction, at the projections `x` of Q.

    ``H v = sum_mu z_mu^T (d^2 ell/dX^2)(z_mu v/sqrt d)/sqrt d + ridge v``.
    """
    slope = jax.grad(lambda y: data_loss(model, reduced, y))
    _, change = jax.jvp(slope, (x,), (project(reduced.z, direction),))
    return collect(reduced.z, change) + model.ridge * direction
