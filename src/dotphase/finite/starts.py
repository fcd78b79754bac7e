"""Where training begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics import validate
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.model.untied import is_untied

Weights = Float[Array, "d r"]
#: ``(key, teacher_weights, positions) -> Q``
Start = Callable[[Array, Float[Array, "d t"], Float[Array, "tokens d"]], Weights]

Scale = Float[Array, ""] | Float[np.ndarray, ""]

#: Standard deviation of the entries of a random start, and of columns nothing else is said of.
SCALE = 0.1


def semantic(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """``Q = Q*``; columns that the teacher does not have are small and random."""
    padding = random(key, teacher_weights, positions, columns, scale)
    return jnp.concatenate([teacher_weights, padding], axis=1)[:, :columns]


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


def mixed(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """``Q*`` beside the positional direction, then small random columns.

    For students with more columns than the teacher: one mechanism in each.
    """
    along = positional(key, teacher_weights, positions, columns, scale)
    both = jnp.concatenate([teacher_weights, along], axis=1)
    return both[:, :columns]


def random(
    key: Array, teacher_weights: Array, positions: Array, columns: int, scale: Scale
) -> Weights:
    """Entries from ``N(0, scale^2)``."""
    shape = (teacher_weights.shape[0], columns)
    normal = jax.random.normal(key, shape, teacher_weights.dtype)
    return jnp.asarray(scale, teacher_weights.dtype) * normal


#: Starts by name; each takes the number of columns and the scale of random entries besides what
#: a user's start takes.
STARTS: dict[str, Callable[[Array, Array, Array, int, Scale], Weights]] = {
    "semantic": semantic,
    "positional": positional,
    "mixed": mixed,
    "random": random,
}


class Named(eqx.Module):
    """A start by its name; nothing is compiled twice for the same one, whatever its scale."""

    name: str = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    copies: int = eqx.field(static=True)
    scale: Scale

    def __call__(self, key: Array, teacher_weights: Array, positions: Array) -> Weights:
        columns = self.columns // self.copies
        once = STARTS[self.name](key, teacher_weights, positions, columns, self.scale)
        return jnp.concatenate([once] * self.copies, axis=1)


def resolve(model: Model, start: str | Start, scale: float | None = None) -> Start:
    """The start as a function ``(key, teacher_weights, positions) -> Q``, from its name.

    An untied student starts with equal queries and keys. `scale` is the standard deviation of
    the entries that are random, `SCALE` if it is not given.
    """
    if callable(start):
        if scale is not None:
            raise InvalidInput("scale", scale, "must not be given with a start of your own")
        return start
    name = validate.choice("start", start, STARTS)
    if name in ("positional", "mixed") and not np.any(np.asarray(model.positions)):
        raise InvalidInput("start", name, "needs a model whose positions are not all zero")
    copies = 2 if is_untied(model) else 1
    if name == "mixed" and model.student_rank // copies <= model.teacher_rank:
        raise InvalidInput("start", name, "needs a student with more columns than the teacher")
    size = validate.number("scale", SCALE if scale is None else scale, above=0)
    return Named(name, model.student_rank, copies, np.asarray(size))


def begin(
    model: Model, start: Start, key: Array, teacher_weights: Array, positions: Array
) -> Weights:
    """Call a start and check what it returns."""
    shape = (teacher_weights.shape[0], model.student_rank)
    weights: Any = start(key, teacher_weights, positions)
    try:
        weights = jnp.asarray(weights, teacher_weights.dtype)
    except (TypeError, ValueError):
        raise InvalidInput("start", weights, f"must return an array of shape {shape}") from None
    if weights.shape != shape:
        raise InvalidInput(
            "start", f"a function returning shape {weights.shape}", f"must return shape {shape}"
        )
    return weights
