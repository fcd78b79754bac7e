"""``random``: entries from ``N(0, scale^2)``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dotphase.finite.begin import Scale, Start
from dotphase.finite.loss import Weights


def random(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Entries from ``N(0, scale^2)``."""
    shape = (teacher_weights.shape[0], columns)
    normal = jax.random.normal(key, shape, teacher_weights.dtype)
    return jnp.asarray(scale, teacher_weights.dtype) * normal


START = Start(random)
