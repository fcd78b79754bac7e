"""``mixed``: the teacher's weights beside the positional direction."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents, require_positions
from dotphase.finite_d.initializers.positional import limit as along
from dotphase.finite_d.initializers.positional import positional
from dotphase.finite_d.initializers.semantic import limit as aligned
from dotphase.finite_d.loss import Weights
from dotphase.model import Model


def mixed(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """``Q*`` beside the positional direction, then small random columns.

    For students with more columns than the teacher: one mechanism in each.
    """
    along = positional(key, teacher_weights, positions, columns, scale)
    both = jnp.concatenate([teacher_weights, along], axis=1)
    return both[:, :columns]


def _refused(model: Model, columns: int) -> str | None:
    if columns <= model.teacher_rank:
        return "needs a student with more columns than the teacher"
    return require_positions(model, columns)


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """The teacher's columns, then those of the positional start."""
    own = model.teacher_rank
    theta, m, rest = aligned(model, columns, scale)
    others = along(model, columns - own, scale)
    m[own:], rest[own:, own:] = others.m, others.rest
    return StartComponents(theta, m, rest)


INITIALIZER = Initializer(mixed, refused=_refused, limit=limit)
