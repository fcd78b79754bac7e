"""``semantic``: the teacher's weights."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents
from dotphase.finite_d.initializers.random import limit as nowhere
from dotphase.finite_d.initializers.random import random
from dotphase.finite_d.loss import Weights
from dotphase.model import Model


def semantic(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """``Q = Q*``; columns that the teacher does not have are small and random."""
    padding = random(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([teacher_weights, padding], axis=1)[:, :columns]


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """The first columns are the teacher's."""
    _, m, rest = nowhere(model, columns, scale)
    own = np.arange(columns) < model.teacher_rank
    return StartComponents(np.eye(columns, model.teacher_rank), m, np.where(own, 0.0, rest))


INITIALIZER = Initializer(semantic, limit=limit)
