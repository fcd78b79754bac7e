"""``positional``: the direction of the positional encodings."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.finite_d.initialization import (
    Initializer,
    Scale,
    StartComponents,
    position_modes,
    require_positions,
)
from dotphase.finite_d.initializers.random import limit as random_limit
from dotphase.finite_d.initializers.random import random
from dotphase.finite_d.loss import Weights
from dotphase.model import Model
from dotphase.model.symmetry import positional_column


def positional(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Return the unit vector of the strongest mode of the positions, then small random columns.

    For the paper's model this is ``(1, ..., 1)/sqrt d``, with ``m = 1/sqrt d``: close to the
    point Q = 0, where the gradient vanishes, but displaced towards the positional minimum, so
    that the loss falls from the first step on.
    """
    mode = jnp.linalg.svd(positions, full_matrices=False)[2][0]
    # The sign of a singular vector is arbitrary: point towards the first token's position.
    mode = jnp.where(positions[0] @ mode < 0, -mode, mode)
    padding = random(key, teacher_weights, positions, columns, scale)[:, 1:]
    return jnp.concatenate([mode[:, None], padding], axis=1)


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """Return the limit of the direction with ``|Q|^2 = d``; a unit vector would vanish."""
    theta, m, orthogonal = random_limit(model, columns, scale)
    mode = position_modes(model)[:, 0]
    m[0] = mode * np.where(mode[0] < 0, -1.0, 1.0)
    orthogonal[0, 0] = 0.0
    return StartComponents(theta, m, orthogonal)


INITIALIZER = Initializer(
    positional, objection=require_positions, limit=limit, first_column=positional_column
)
