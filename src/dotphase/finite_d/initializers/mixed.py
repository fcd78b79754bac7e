"""``mixed``: the teacher's weights and the positional direction, in different columns."""

import jax.numpy as jnp
from jaxtyping import Array

from dotphase.finite_d.initialization import Initializer, Scale, StartComponents, require_positions
from dotphase.finite_d.initializers.positional import limit as positional_limit
from dotphase.finite_d.initializers.positional import positional
from dotphase.finite_d.initializers.semantic import limit as semantic_limit
from dotphase.finite_d.loss import Weights
from dotphase.model import Model


def mixed(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Return Q*, the positional direction, then small random columns.

    This is for students with more columns than the teacher.
    """
    position = positional(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([teacher_weights, position], axis=1)[:, :columns]


def _objection(model: Model, columns: int) -> str | None:
    if columns <= model.teacher_rank:
        return "needs a student with more columns than the teacher"
    return require_positions(model, columns)


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """Return the limit: the teacher's columns, then those of the positional start."""
    t = model.teacher_rank
    theta, m, orthogonal = semantic_limit(model, columns, scale)
    rest = positional_limit(model, columns - t, scale)
    m[t:], orthogonal[t:, t:] = rest.m, rest.orthogonal
    return StartComponents(theta, m, orthogonal)


INITIALIZER = Initializer(mixed, objection=_objection, limit=limit)
