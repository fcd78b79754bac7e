"""``random``: entries from ``N(0, scale^2)``."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents
from dotphase.finite_d.loss import Weights
from dotphase.model import Model


def random(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Draw all entries from ``N(0, scale^2)``."""
    shape = (teacher_weights.shape[0], columns)
    normal = jax.random.normal(key, shape, teacher_weights.dtype)
    return jnp.asarray(scale, teacher_weights.dtype) * normal


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """Return the limit: the overlaps are of order 1/sqrt d, so they vanish."""
    return StartComponents(
        np.zeros((columns, model.teacher_rank)),
        np.zeros((columns, model.length)),
        scale**2 * np.eye(columns),
    )


INITIALIZER = Initializer(random, limit=limit)
