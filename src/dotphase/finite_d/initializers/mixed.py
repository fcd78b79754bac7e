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

    In students with no more columns than the teacher, as in deep attention, the last column is the
    positional one.
    """
    position = positional(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([teacher_weights[:, : columns - 1], position], axis=1)[:, :columns]


def _objection(model: Model, columns: int) -> str | None:
    if columns == 1:
        return "needs a student with two or more columns"
    return require_positions(model, columns)


def limit(model: Model, columns: int, scale: float) -> StartComponents:
    """Return the limit: the teacher's columns, then those of the positional start."""
    t = min(model.teacher_rank, columns - 1)
    theta, m, orthogonal = semantic_limit(model, columns, scale)
    rest = positional_limit(model, columns - t, scale)
    theta[t:], m[t:], orthogonal[t:, t:] = 0.0, rest.m, rest.orthogonal
    return StartComponents(theta, m, orthogonal)


INITIALIZER = Initializer(mixed, objection=_objection, limit=limit)
