"""Derivatives of the averages by the overlaps, in score form.

The force g of the proximal map depends on the fields u = (omega, h*) only. The overlaps q, m and
theta change only the density p of u, so that

    d E[F(u)] = E[F(u) d log p(u)]

on the same points, without finite differences. This holds where g jumps, too. (V changes the
proximal map itself.)
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.model import Model
from dotphase.numerics.linalg import inverses, matvec
from dotphase.numerics.proximal_map import ProxState, vmap_points
from dotphase.theory.overlaps import AnyArray, Conjugates, Overlaps
from dotphase.theory.state_evolution import apply_each, draw_fields, mean_of_scrambles, prox_problem


def conjugate_slopes(
    model: Model,
    overlaps: Overlaps,
    points: Float[Array, "dims scrambles*points"],
    prox_state: ProxState,
    directions: Overlaps,
) -> Conjugates:
    """Derivatives of the conjugates over alpha along directions in (q, m, theta).

    With ``z = C^{-1} (u - mu)`` for each token, C the covariance of its fields and mu their mean,
    ``d log p = z.dmu + (z^T dC z - tr C^{-1} dC)/2`` and ``dz = -C^{-1} (dC z + dmu)``.

    Parameters
    ----------
    directions : Overlaps
        Directions, with a leading axis; V is ignored.

    Returns
    -------
    Conjugates
        With leading axes (scrambles, directions).
    """
    fields = draw_fields(model, overlaps, points)
    problem = prox_problem(overlaps, fields)
    length, r, t = model.length, model.student_rank, model.teacher_rank
    force = vmap_points(partial(matvec, problem.precision))(prox_state.x - fields.omega)
    g = force.reshape(length, r, -1)
    noise = jnp.asarray(model.rho)[:, None, None] * jnp.eye(t)
    inverse = inverses(_covariance(overlaps.q, overlaps.theta, noise))
    omega = fields.omega.reshape(length, r, -1) - fields.mean
    z = apply_each(inverse, jnp.concatenate([omega, fields.h], axis=1))
    square = g[:, :, None] * g[:, None]
    square = square - jnp.mean(square, axis=-1, keepdims=True)

    def along(direction: Overlaps) -> Conjugates:
        bend = _covariance(direction.q, direction.theta, jnp.zeros_like(noise))
        means = fields.shift(direction.m)
        shift = jnp.concatenate([means, jnp.zeros((length, t, means.shape[-1]))], axis=1)
        turned = apply_each(bend, z)
        weight = jnp.sum(z * (shift + 0.5 * turned), axis=(0, 1)) - 0.5 * jnp.sum(inverse * bend)
        change = z * weight - apply_each(inverse, turned + shift)
        values = Conjugates(
            qhat=square * weight,
            mhat=fields.along(g) * weight,
            Vhat=-g[:, :, None] * change[:, None, :r],
            thetahat=g[:, :, None] * change[:, None, r:],
        )
        return Conjugates(*(mean_of_scrambles(jnp.asarray(part)) for part in values))

    slopes = jax.lax.map(along, directions)
    return Conjugates(*(jnp.swapaxes(part, 0, 1) for part in slopes))


def _covariance(
    q: Float[AnyArray, "tokens r r"],
    theta: Float[AnyArray, "tokens r t"],
    noise: Float[Array, "tokens t t"],
) -> Float[Array, "tokens r+t r+t"]:
    """Covariance of the fields of each token."""
    upper, lower = (q, theta), (theta.swapaxes(1, 2), noise)
    return jnp.concatenate([jnp.concatenate(row, axis=2) for row in (upper, lower)], axis=1)
