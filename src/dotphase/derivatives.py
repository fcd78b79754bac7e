"""Value, gradient and Hessian of the loss of one sentence in its projected tokens.

Any student works through automatic differentiation. Where a student of a given size has a
closed form that pays, it is listed in `CLOSED_FORMS`; both ways give the same numbers, and
a test holds them to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.model import Model
from dotphase.paper import softmax_attention


class Derivatives(NamedTuple):
    """Value, gradient and Hessian at one point, tokens and rank flattened."""

    value: Float[Array, ""]
    gradient: Float[Array, " dims"]
    hessian: Float[Array, "dims dims"]


Differentiated = Callable[[Float[Array, " dims"], Float[Array, "tokens tokens"]], Derivatives]


def differentiate(function: Callable[[Array], Array], x: Float[Array, " dims"]) -> Derivatives:
    """Value, gradient and Hessian of a scalar function, from one pass of autodiff."""

    def slope(z: Array) -> tuple[Array, tuple[Array, Array]]:
        value, gradient = jax.value_and_grad(function)(z)
        return gradient, (value, gradient)

    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(x)
    return Derivatives(value, gradient, (hessian + hessian.T) / 2)


def loss_derivatives(model: Model) -> Differentiated:
    """The function ``(X, T) -> Derivatives`` of ``ell(X; T)`` for a model."""
    closed = CLOSED_FORMS.get((model.student, model.length, model.student_rank))
    if closed is not None:
        return lambda x, target: closed(x, target, jnp.asarray(model.rho))
    return by_autodiff(model)


def by_autodiff(model: Model) -> Differentiated:
    """Derivatives of ``ell(X; T)`` for any student."""

    def derivatives(x: Array, target: Array) -> Derivatives:
        return differentiate(lambda z: model.loss(z.reshape(model.length, -1), target), x)

    return derivatives


def two_token_softmax(
    x: Float[Array, "2"], target: Float[Array, "2 2"], rho: Float[Array, "2"]
) -> Derivatives:
    """``ell`` for ``S = softmax(X X^T)`` with two tokens and rank one."""

    def row(p: Array, own: int) -> tuple[Array, Array, Array]:
        other = 1 - own
        miss, miss_other = p - target[own, own], (1 - p) - target[own, other]
        value = 0.5 * (rho[own] * miss**2 + rho[other] * miss_other**2)
        return value, rho[own] * miss - rho[other] * miss_other, rho[own] + rho[other]

    return two_logistic_rows(x, row)


def two_logistic_rows(
    x: Float[Array, "2"], row: Callable[[Array, int], tuple[Array, Array, Array]]
) -> Derivatives:
    """A sum over rows of functions of ``S = softmax(X X^T)``, two tokens and rank one.

    Each row of S is a logistic function of one number: ``S_11 = s(u)`` with
    ``u = x_1 (x_1 - x_2)``, and ``S_22 = s(v)`` with ``v = x_2 (x_2 - x_1)``. ``row(p, i)``
    gives the function of row i at ``S_ii = p`` and its first two derivatives in p.
    """
    first, second = x[0], x[1]

    def by_score(score: Array, own: int) -> tuple[Array, Array, Array]:
        p = jax.nn.sigmoid(score)
        value, by_p, by_pp = row(p, own)
        p1 = p * (1 - p)
        return value, by_p * p1, by_pp * p1**2 + by_p * p1 * (1 - 2 * p)

    a, a1, a2 = by_score(first * (first - second), 0)
    b, b1, b2 = by_score(second * (second - first), 1)
    u = (2 * first - second, -first)
    v = (-second, 2 * second - first)
    gradient = jnp.stack([a1 * u[0] + b1 * v[0], a1 * u[1] + b1 * v[1]])
    off = a2 * u[0] * u[1] - a1 + b2 * v[0] * v[1] - b1
    hessian = jnp.stack(
        [
            jnp.stack([a2 * u[0] ** 2 + 2 * a1 + b2 * v[0] ** 2, off]),
            jnp.stack([off, a2 * u[1] ** 2 + b2 * v[1] ** 2 + 2 * b1]),
        ]
    )
    return Derivatives(a + b, gradient, hessian)


#: Closed forms by (student, length, student rank).
CLOSED_FORMS: dict[tuple[object, int, int], Callable[[Array, Array, Array], Derivatives]] = {
    (softmax_attention, 2, 1): two_token_softmax,
}
