"""``semantic``: the teacher's weights."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents
from dotphase.finite_d.initializers.random import limit as random_limit
from dotphase.finite_d.initializers.random import random
from dotphase.finite_d.loss import Weights
from dotphase.model import Model


def semantic(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Return Q*; columns beyond those of the teacher are small and random."""
    padding = random(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([teacher_weights, padding], axis=1)[:, :columns]


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """Return the limit: the first columns are those of the teacher."""
    _, m, orthogonal = random_limit(model, columns, scale)
    is_teacher = np.arange(columns) < model.teacher_rank
    theta = np.eye(columns, model.teacher_rank)
    return StartComponents(theta, m, np.where(is_teacher, 0.0, orthogonal))


INITIALIZER = Initializer(semantic, limit=limit)
