"""Test error along a descent, from its overlaps."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.dmft.conditioned_descent import Records
from dotphase.finite_d.test_error import count_fields
from dotphase.model import Model
from dotphase.numerics.linalg import matrix_sqrt
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.quadrature import Rule, gauss_hermite, sobol_rule

#: Largest number of fields for which a tensor-product rule is used.
MAX_TENSOR_DIMS = 4
#: Order of the tensor-product rule in each field.
ORDER = 10
#: log2 of the number of quasi-random points, for more fields.
LOG2_POINTS = 12


def field_rule(
    model: Model, rng: np.random.Generator, order: int = ORDER, log2_points: int = LOG2_POINTS
) -> Rule:
    """Quadrature rule for averages over the fields of teacher and student."""
    dims = count_fields(model)
    if dims <= MAX_TENSOR_DIMS and model.loss is None:
        return gauss_hermite(order, dims)
    return sobol_rule(log2_points, dims, rng)


@eqx.filter_jit
def test_errors(
    model: Model, teacher: Float[Array, "t t"], records: Records, rule: Rule
) -> Float[Array, " steps"]:
    """Test error ``eps_g = (2/L) E ell(h + m; T(h*))`` at every step.

    The fields of token l are Gaussian with covariance ``sigma_l^2`` times
    ``[[Q*^T Q*, Q*^T Q], [Q^T Q*, Q^T Q]]/d``.
    """
    t, length = model.teacher_rank, model.length
    fields = length * (t + model.student_rank)
    zeta = jnp.asarray(rule.points[:fields]).reshape(length, t + model.student_rank, -1)
    noise = jnp.asarray(rule.points[fields:])
    sigma = jnp.asarray(model.sigma)[:, None, None]

    def test_error(step: Records) -> Float[Array, ""]:
        top = jnp.concatenate([teacher, step.theta.T], axis=1)
        gram = jnp.concatenate([top, jnp.concatenate([step.theta, step.C], axis=1)])
        h = sigma * jnp.einsum("ij,ljn->lin", matrix_sqrt(gram), zeta)
        target = vmap_points(model.label)(h[:, :t], noise)
        losses = vmap_points(model.test_loss)(h[:, t:] + step.m[..., None], target)
        return model.test_factor * jnp.dot(losses, jnp.asarray(rule.weights))

    return jax.lax.map(test_error, records)
