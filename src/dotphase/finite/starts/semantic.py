"""``semantic``: the teacher's weights."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from dotphase.finite.begin import Scale, Start
from dotphase.finite.loss import Weights
from dotphase.finite.starts.random import random


def semantic(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """``Q = Q*``; columns that the teacher does not have are small and random."""
    padding = random(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([teacher_weights, padding], axis=1)[:, :columns]


START = Start(semantic)
