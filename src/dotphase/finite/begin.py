"""From the name of a start, or a user's function, to the weights that a run begins at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics import validate
from dotphase.errors import InvalidInput
from dotphase.finite.loss import Weights
from dotphase.finite.starts import STARTS
from dotphase.model import Model
from dotphase.model.untied import is_untied

#: A user's start: ``(key, teacher_weights, positions) -> Q``
StartFunction = Callable[[Array, Float[Array, "d t"], Float[Array, "tokens d"]], Weights]

Scale = Float[Array, ""] | Float[np.ndarray, ""]

#: Standard deviation of the entries of a random start, and of columns nothing else is said of.
SCALE = 0.1


@dataclass(frozen=True)
class Start:
    """A start that has a name, for any number of columns.

    Attributes
    ----------
    weights : ``(key, teacher_weights, positions, columns, scale) -> Q``
    refused : ``(model, columns) -> `` why this model cannot begin there, or None
    """

    weights: Callable[[Array, Array, Array, int, Scale], Weights]
    refused: Callable[[Model, int], str | None] = lambda model, columns: None


def without_positions(model: Model, columns: int) -> str | None:
    """Refuses models whose positions are all zero."""
    if np.any(np.asarray(model.positions)):
        return None
    return "needs a model whose positions are not all zero"


class FromStart(eqx.Module):
    """A `Start` as a user's function would be; nothing is compiled again for another scale."""

    start: Start = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    copies: int = eqx.field(static=True)
    scale: Scale

    def __call__(self, key: Array, teacher_weights: Array, positions: Array) -> Weights:
        columns = self.columns // self.copies
        once = self.start.weights(key, teacher_weights, positions, columns, self.scale)
        return jnp.concatenate([once] * self.copies, axis=1)


def resolve(model: Model, start: str | StartFunction, scale: float | None = None) -> StartFunction:
    """The start as a function ``(key, teacher_weights, positions) -> Q``, from its name.

    An untied student starts with equal queries and keys. `scale` is the standard deviation of
    the entries that are random, `SCALE` if it is not given.
    """
    if callable(start):
        if scale is not None:
            raise InvalidInput("scale", scale, "must not be given with a start of your own")
        return start
    named = STARTS[STARTS.check(start)]
    copies = 2 if is_untied(model) else 1
    reason = named.refused(model, model.student_rank // copies)
    if reason is not None:
        raise InvalidInput("start", start, reason)
    size = validate.number("scale", SCALE if scale is None else scale, above=0)
    return FromStart(named, model.student_rank, copies, np.asarray(size))


def name_of(start: str | StartFunction) -> str:
    """What results call a start."""
    return start if isinstance(start, str) else "custom"


def begin(
    model: Model, start: StartFunction, key: Array, teacher_weights: Array, positions: Array
) -> Weights:
    """Call a start and check what it returns."""
    shape = (teacher_weights.shape[0], model.student_rank)
    weights: Any = start(key, teacher_weights, positions)
    try:
        weights = jnp.asarray(weights, teacher_weights.dtype)
    except (TypeError, ValueError):
        raise InvalidInput("start", weights, f"must return an array of shape {shape}") from None
    if weights.shape != shape:
        found = f"a function returning shape {weights.shape}"
        raise InvalidInput("start", found, f"must return shape {shape}")
    return weights
