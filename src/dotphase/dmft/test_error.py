"""The test error along a descent, from its overlaps."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.dmft.kernel import Records
from dotphase.finite_d.test_error import count_fields
from dotphase.model import Model
from dotphase.numerics.linalg import matrix_sqrt
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.quadrature import Rule, gauss_hermite, sobol_rule

#: Most dimensions of a product rule, its order in each, and log2 of the points otherwise.
TENSOR_DIMS, ORDER, LOG2_POINTS = 4, 10, 12


def points_of(model: Model, rng: np.random.Generator) -> Rule:
    """Points of the average over the fields of teacher and student."""
    dims = count_fields(model)
    if dims <= TENSOR_DIMS and model.loss is None:
        return gauss_hermite(ORDER, dims)
    return sobol_rule(LOG2_POINTS, dims, rng)


@eqx.filter_jit
def test_errors(
    model: Model, teacher: Float[Array, "t t"], records: Records, rule: Rule
) -> Float[Array, " steps"]:
    """``eps_g = (2/L) E ell(h + m; T(h*))`` at every step.

    Fields of token l are Gaussian with covariance ``sigma_l^2`` times
    ``[[Q*^T Q*, Q*^T Q], [Q^T Q*, Q^T Q]]/d``.
    """
    t, length = model.teacher_rank, model.length
    own = length * (t + model.student_rank)
    zeta = jnp.asarray(rule.points[:own]).reshape(length, t + model.student_rank, -1)
    noise = jnp.asarray(rule.points[own:])
    sigma = jnp.asarray(model.sigma)[:, None, None]

    def one(noted: Records) -> Float[Array, ""]:
        top = jnp.concatenate([teacher, noted.theta.T], axis=1)
        gram = jnp.concatenate([top, jnp.concatenate([noted.theta, noted.C], axis=1)])
        fields = sigma * jnp.einsum("ij,ljn->lin", matrix_sqrt(gram), zeta)
        target = vmap_points(model.label)(fields[:, :t], noise)
        missed = vmap_points(model.missed)(fields[:, t:] + noted.m[..., None], target)
        return model.test_factor * jnp.dot(missed, jnp.asarray(rule.weights))

    return jax.lax.map(one, records)
