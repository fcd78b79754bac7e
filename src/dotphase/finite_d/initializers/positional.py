"""``positional``: along the positional encodings."""

from __future__ import annotations

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
from dotphase.finite_d.initializers.random import limit as nowhere
from dotphase.finite_d.initializers.random import random
from dotphase.finite_d.loss import Weights
from dotphase.model import Model


def positional(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """The unit vector along the strongest mode of the positions, as first column.

    For the paper's model that is its ``(1, ..., 1)/sqrt d``, with ``m = 1/sqrt d``: close to
    the point Q = 0, where the gradient vanishes, but displaced towards the positional minimum
    only, and the loss falls from there. Other columns are small and random.
    """
    strongest = jnp.linalg.svd(positions, full_matrices=False)[2][0]
    # A singular vector has no sign of its own: towards the first token's position.
    along = positions[0] @ strongest
    strongest = jnp.where(along < 0, -strongest, strongest)
    others = random(key, teacher_weights, positions, columns, scale)[:, 1:]
    return jnp.concatenate([strongest[:, None], others], axis=1)


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """The same direction with ``|Q|^2 = d``: a unit vector would be zero in this limit."""
    theta, m, rest = nowhere(model, columns, scale)
    strongest = position_modes(model)[:, 0]
    m[0] = strongest * np.where(strongest[0] < 0, -1.0, 1.0)
    rest[0, 0] = 0.0
    return StartComponents(theta, m, rest)


INITIALIZER = Initializer(positional, refused=require_positions, limit=limit)
