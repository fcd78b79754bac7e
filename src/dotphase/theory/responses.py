"""Averages of the response of the proximal map to its fields.

The response ``G_kn = dg_k/domega_n`` enters the replicon and the weight of the jumps
(`dotphase.theory.stability`), the multipliers (`dotphase.theory.multipliers`) and the model error
(`dotphase.theory.model_error`).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.model import Model
from dotphase.model.derivatives import loss_derivatives
from dotphase.numerics.proximal_map import ProxState, response
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.density_derivatives import conjugate_slopes
from dotphase.theory.overlaps import Conjugates, Overlaps
from dotphase.theory.state_evolution import draw_fields, prox_problem


class Responses(NamedTuple):
    """Averages of the response ``G = dg/domega`` of the proximal map.

    Attributes
    ----------
    jacobian : (scrambles, L, r, r) array
        ``E[G_ll]`` of each token.
    squared : (scrambles, L, L, r r, r r) array
        ``E[G_kn (x) G_kn]`` of each pair of tokens.
    slopes : Conjugates
        Derivatives of the conjugates, divided by alpha, by the coordinates of q, m and theta, at
        fixed V (`dotphase.theory.multipliers`).
    """

    jacobian: Float[Array, "scrambles tokens r r"]
    squared: Float[Array, "scrambles tokens tokens r*r r*r"]
    slopes: Conjugates


def mean_responses(
    model: Model,
    overlaps: Overlaps,
    points: Float[Array, "dims scrambles*points"],
    prox_state: ProxState,
    directions: Overlaps,
) -> Responses:
    """Average ``G = V^{-1} (H^{-1} V^{-1} - 1)`` over one block of points, H the prox Hessian."""
    fields = draw_fields(model, overlaps, points)
    problem = prox_problem(overlaps, fields)
    length, r = model.length, model.student_rank
    g = response(loss_derivatives(model), problem, prox_state.x)
    g = g.reshape(length, r, length, r, N_SCRAMBLES, -1)
    jacobian = jnp.stack([jnp.mean(g[k, :, k], axis=-1) for k in range(length)])
    squared = jnp.einsum("kalbsn,kcldsn->sklacbd", g, g) / g.shape[-1]
    shape = (N_SCRAMBLES, length, length, r * r, r * r)
    slopes = conjugate_slopes(model, overlaps, points, prox_state, directions)
    return Responses(jnp.moveaxis(jacobian, -1, 0), squared.reshape(shape), slopes)
