"""The training loss, exactly, from a few numbers per sentence.

With ``z = x + p`` the loss of a sentence depends on its tokens only through the
projections ``X = z Q/sqrt d`` and three quantities that Q does not enter,

    B = T x z^T/d,   C = z z^T/d,   c = |T x|^2/d,
    ell(X) = |T x - S(X) z|^2/(2d) = c/2 - tr(B S^T) + 1/2 tr(S C S^T),   S = S(X).

They are computed once. A gradient then costs two products with the (n L) x d matrix z, and
a product with the Hessian costs two more; nothing else of size n L d is touched. No limit
is taken: this is the loss at finite d.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics.attention import Rows, tied_attention_derivatives
from dotphase._numerics.linalg import UNROLL_LIMIT, Entries, dot, total
from dotphase._numerics.prox import over_points
from dotphase._numerics.softmax import Row, softmax_derivatives
from dotphase._numerics.taylor import Derivatives, differentiate
from dotphase.finite.data import Dataset
from dotphase.model import Attention, Model
from dotphase.model.derivatives import has_closed_form

Weights = Float[Array, "d r"]


class Form(NamedTuple):
    """Quadratic form of a sentence's loss in its attention matrix S; c may not be left out:
    it makes the loss a square, which is never negative."""

    B: Float[Array, "tokens tokens *n"]
    C: Float[Array, "tokens tokens *n"]
    c: Float[Array, " *n"]


class Reduced(NamedTuple):
    """A data set as the training loss sees it.

    Attributes
    ----------
    z : tokens with their positions added
    form : B, C and c of every sentence, sentences on the last axis
    used : one for a sentence, zero for padding
    """

    z: Float[Array, "n tokens d"]
    form: Form
    used: Float[Array, " n"]


def reduce(model: Model, data: Dataset) -> Reduced:
    """Compute z and the quadratic forms of all sentences."""
    x, teacher_weights, p = data
    n, _, d = x.shape
    h = project(x, teacher_weights)
    target = over_points(model.teacher)(h)
    xx = token_products(x)
    xp = project(x, p.T) / jnp.sqrt(d).astype(x.dtype)
    pp = (p @ p.T / d)[..., None]
    xz = xx + xp
    form = Form(
        B=jnp.einsum("ikn,kln->iln", target, xz),
        C=xz + xp.swapaxes(0, 1) + pp,
        c=jnp.einsum("ikn,kln,iln->n", target, xx, target),
    )
    return Reduced(x + p, form, jnp.ones(n, x.dtype))


def token_products(x: Float[Array, "n tokens d"]) -> Float[Array, "tokens tokens n"]:
    """``x x^T/d`` of every sentence."""
    _, length, d = x.shape
    # Pairs of tokens one by one: a batch of tiny matrix products is ten times slower.
    pair = {
        (k, l): jnp.sum(x[:, k] * x[:, l], axis=-1) / d for k in range(length) for l in range(k + 1)
    }
    rows = [[pair[max(k, l), min(k, l)] for l in range(length)] for k in range(length)]
    return jnp.stack([jnp.stack(row) for row in rows])


def project(
    z: Float[Array, "n tokens d"], weights: Float[Array, "d k"]
) -> Float[Array, "tokens k n"]:
    """``z Q/sqrt d`` of every sentence, sentences on the last axis."""
    n, length, d = z.shape
    flat = jnp.matmul(z.reshape(n * length, d), weights, precision="highest")
    return jnp.moveaxis(flat.reshape(n, length, -1), 0, -1) / np.sqrt(d)


def collect(
    z: Float[Array, "n tokens d"], force: Float[Array, "tokens k n"]
) -> Float[Array, "d k"]:
    """``sum_mu z_mu^T g_mu/sqrt d``, the transpose of `project`."""
    n, length, d = z.shape
    rows = jnp.moveaxis(force, -1, 0).reshape(n * length, -1)
    # As (g^T z)^T: the compiler's z^T g walks along columns and is five times slower.
    return jnp.matmul(rows.T, z.reshape(n * length, d), precision="highest").T / np.sqrt(d)


def sentence_loss(student: Attention, x: Float[Array, "tokens r"], form: Form) -> Float[Array, ""]:
    """``ell(X)`` of one sentence."""
    s = student(x)
    length = s.shape[0]
    value = 0.5 * form.c
    for i in range(length):
        mixed = [dot(s[i], form.C[:, k]) for k in range(length)]
        value = value - dot(s[i], form.B[i]) + 0.5 * dot(s[i], jnp.stack(mixed))
    return value


def sentence_derivatives(
    student: Attention, length: int, rank: int
) -> Callable[[Entries, Form], Derivatives]:
    """``(X, form) -> Derivatives`` of ``ell(X)``, tokens and rank flattened.

    By automatic differentiation, unless there is a closed form.
    """

    def derivatives(x: Entries, form: Form) -> Derivatives:
        return differentiate(lambda y: sentence_loss(student, y.reshape(length, -1), form), x)

    return softmax_loss if has_closed_form(student, length, rank) else derivatives


def softmax_loss(x: Entries, form: Form) -> Derivatives:
    """``ell(X)`` for ``S = softmax(X X^T)``."""
    B, C, c = form
    if len(x) > UNROLL_LIMIT:
        found = tied_attention_derivatives(x, len(B), lambda S: _all_rows(S, B, C))
        return found._replace(value=found.value + 0.5 * c)
    tokens = range(len(B))
    curvature = {(j, k): C[j, k] for j in tokens for k in tokens if j <= k}

    def row(i: int, s: Sequence[Array]) -> Row:
        curved = [dot([C[j, k] for k in tokens], s) for j in tokens]
        slope = [curved[j] - B[i, j] for j in tokens]
        value = total([s[j] * (0.5 * curved[j] - B[i, j]) for j in tokens])
        return Row(value, slope, curved, curvature)

    found = softmax_derivatives(x, len(B), row)
    return found._replace(value=found.value + 0.5 * c)


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
    """``ell(X_mu)`` of every sentence."""
    return over_points(lambda some, form: sentence_loss(model.student, some, form))(x, reduced.form)


def data_loss(model: Model, reduced: Reduced, x: Float[Array, "tokens r n"]) -> Float[Array, ""]:
    """``sum_mu ell(X_mu)``."""
    return jnp.sum(reduced.used * sentence_losses(model, reduced, x))


def training_loss(
    model: Model, reduced: Reduced, weights: Weights, x: Float[Array, "tokens r n"]
) -> Float[Array, ""]:
    """``sum_mu ell + (ridge/2) |Q|^2`` of weights Q whose projections X are known.

    No token is touched: along a line ``Q + t P`` the projections are ``X + t Y``, and any t
    costs n numbers.
    """
    return data_loss(model, reduced, x) + 0.5 * model.ridge * jnp.sum(weights**2)


def value_and_gradient(
    model: Model, reduced: Reduced, weights: Weights
) -> tuple[Float[Array, ""], Weights]:
    """Training loss and its gradient in Q: two products with the tokens."""
    x = project(reduced.z, weights)
    slopes = jax.value_and_grad(lambda q, y: training_loss(model, reduced, q, y), (0, 1))
    value, (direct, force) = slopes(weights, x)
    return value, direct + collect(reduced.z, force)


def hessian_product(
    model: Model, reduced: Reduced, x: Float[Array, "tokens r n"], direction: Weights
) -> Weights:
    """The Hessian of the training loss times a direction, at the projections `x` of Q.

    ``H v = sum_mu z_mu^T (d^2 ell/dX^2)(z_mu v/sqrt d)/sqrt d + ridge v``.
    """
    slope = jax.grad(lambda y: data_loss(model, reduced, y))
    _, change = jax.jvp(slope, (x,), (project(reduced.z, direction),))
    return collect(reduced.z, change) + model.ridge * direction
