"""Find the function of a model that makes a result infinite or NaN."""

from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from dotphase.model.definition import Model
from dotphase.model.validation import call_many, where_not_finite

#: Projected tokens of many sentences, which lie on the last axis.
Fields = Float[Array | np.ndarray, "tokens rank n"]


def diagnose_functions(
    model: Model, teacher: Iterable[Fields], student: Iterable[Fields]
) -> str | None:
    """Describe the function that is not finite, and the fields at which it is not.

    None if all are finite, and for models with a loss of their own or structured tokens.
    """
    if not model.plain:
        return None
    slope = Slope(model.student)
    calls = [("teacher", model.teacher, fields) for fields in teacher]
    for fields in student:
        calls += [("student", model.student, fields), ("derivative of the student", slope, fields)]
    for name, function, fields in calls:
        rows = np.moveaxis(np.asarray(fields), -1, 0)
        rows = rows[np.isfinite(rows).all(axis=(1, 2))]
        position = where_not_finite(rows, call_many(function, rows)) if len(rows) else None
        if position is not None:
            return f"the {name} is not finite at {position}"
    return None


class Slope(eqx.Module):
    """The derivative of a function, compiled once; `jax.jacobian` would be compiled every time."""

    function: Callable[..., Any]

    def __call__(self, h: Float[Array, "tokens rank"]) -> Array:
        return jax.jacobian(self.function)(h)


def unknown_cause(model: Model) -> str:
    """Describe a failure for which no single function is responsible."""
    if model.plain:
        return "teacher and student are finite at the fields, but their averages are not"
    return "the loss or its derivative is not finite at the fields"
