"""Diagnose a result that is not finite: name the function of the model that caused it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from dotphase.model.definition import Model
from dotphase.model.validation import call_many, where_not_finite

#: Projected tokens of many sentences, as engines have them: sentences on the last axis.
Fields = Float[Array | np.ndarray, "tokens rank n"]


def diagnose_functions(
    model: Model, teacher: Iterable[Fields], student: Iterable[Fields]
) -> str | None:
    """In words, which function is not finite at which of the fields that it was called with.

    None where all are finite, and for models with a loss of their own, or tokens with structure.
    """
    if not model.plain:
        return None
    slope = Slope(model.student)
    seen = [("teacher", model.teacher, fields) for fields in teacher]
    for fields in student:
        seen += [("student", model.student, fields), ("derivative of the student", slope, fields)]
    for what, function, fields in seen:
        rows = np.moveaxis(np.asarray(fields), -1, 0)
        rows = rows[np.isfinite(rows).all(axis=(1, 2))]
        place = where_not_finite(rows, call_many(function, rows)) if len(rows) else None
        if place is not None:
            return f"the {what} is not finite at {place}"
    return None


class Slope(eqx.Module):
    """The derivative of a function, compiled once for each: `jax.jacobian` is new every time."""

    function: Callable[..., Any]

    def __call__(self, h: Float[Array, "tokens rank"]) -> Array:
        return jax.jacobian(self.function)(h)


def unknown_cause(model: Model) -> str:
    """What is said where no function could be blamed."""
    if model.plain:
        return "teacher and student are finite at the fields, but not what is made of them"
    return "the loss or its derivative is not finite at the fields"
