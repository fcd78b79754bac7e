"""``last_layer``: the teacher's weights in the last layer of deep attention."""

import jax.numpy as jnp
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents
from dotphase.finite_d.initializers.random import limit as random_limit
from dotphase.finite_d.initializers.random import random
from dotphase.finite_d.loss import Weights
from dotphase.model import Model
from dotphase.model.deep import require_layers


def last_layer(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Return the last column of Q*; the others are small and random."""
    others = random(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([others[:, :-1], teacher_weights[:, -1:]], axis=1)


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """Return the limit: the last column is the teacher's."""
    start = random_limit(model, columns, scale)
    start.theta[-1, -1], start.orthogonal[-1, -1] = 1.0, 0.0
    return start


INITIALIZER = Initializer(
    last_layer, objection=lambda model, columns: require_layers(model), limit=limit
)
