"""The linear positional layer ``f(x) = W x``, fitted to a data set in closed form."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.finite_d.datasets import Dataset
from dotphase.finite_d.loss import project, token_products
from dotphase.model import Model
from dotphase.numerics.proximal_map import vmap_points


def mixing_moments(
    model: Model, data: Dataset, used: Float[Array, " n"] | None = None
) -> tuple[Float[Array, "tokens tokens"], Float[Array, "tokens tokens"]]:
    """Return ``B = sum_mu T x x^T/d`` and ``C = sum_mu x x^T/d``.

    They determine the loss of a fixed mixing W,
    ``sum_mu |y - W x|^2/(2d) = const - tr(B W^T) + 1/2 tr(W C W^T)``. `used` is one for the
    sentences of a padded data set and zero for padding.
    """
    target = vmap_points(model.label)(project(data.tokens, data.teacher_weights), data.noise.T)
    xx = token_products(data.tokens)
    if used is not None:
        xx = used * xx
    return jnp.einsum("ikn,kln->il", target, xx), jnp.sum(xx, axis=-1)


def linear_layer(
    model: Model, data: Dataset, used: Float[Array, " n"] | None = None
) -> Float[Array, "tokens tokens"]:
    """Fit the layer W to a data set in closed form.

    Minimises ``sum_mu |y - W x|^2/(2d) + (ridge/2) |W|^2``, so that
    ``W = (sum_mu T x x^T/d) (sum_mu x x^T/d + ridge I)^{-1}``.
    """
    labels, inputs = mixing_moments(model, data, used)
    inputs = inputs + model.ridge * jnp.eye(model.length, dtype=inputs.dtype)
    return jnp.linalg.solve(inputs, labels.T).T
