"""The teacher's weights in one layer of deep attention."""

import jax.numpy as jnp
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents
from dotphase.finite_d.initializers.random import limit as random_limit
from dotphase.finite_d.initializers.random import random
from dotphase.finite_d.loss import Weights
from dotphase.model import Model
from dotphase.model.deep import require_layers


def layer_start(layer: int) -> Initializer:
    """Make the start with one column of Q*, the first (0) or the last (-1); others are random."""

    def weights(
        key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
    ) -> Weights:
        small = random(key, teacher_weights, positions, columns, scale)
        return jnp.asarray(small).at[:, layer].set(teacher_weights[:, layer])

    def limit(model: Model, columns: int, scale: float) -> StartComponents:
        start = random_limit(model, columns, scale)
        start.theta[layer, layer], start.orthogonal[layer, layer] = 1.0, 0.0
        return start

    return Initializer(weights, objection=lambda model, columns: require_layers(model), limit=limit)
