"""Which function of a model is not finite, and where: said of a run whose numbers are not."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Float

from dotphase._numerics.quadrature import Rule
from dotphase.finite.loss import Weights, project
from dotphase.finite.prepare import Prepared
from dotphase.finite.test_error import both_fields
from dotphase.model.definition import Attention, Model
from dotphase.model.trying import call_many, where_not_finite


def blame(model: Model, data: Prepared, weights: Weights, rule: Rule) -> str:
    """In words, which function is not finite at which of the fields that a run has seen."""
    if not np.isfinite(np.asarray(weights)).all():
        return "the weights are not finite"
    if not model.plain:
        return "the loss or its derivative is not finite at the fields of the data"
    for what, function, fields in _seen(model, data, weights, rule):
        place = where_not_finite(fields, call_many(function, fields))
        if place is not None:
            return f"the {what} is not finite at {place}"
    fields = _first(project(data.reduced.z, weights))
    place = where_not_finite(fields, call_many(jax.jacobian(model.student), fields))
    if place is not None:
        return f"the derivative of the student is not finite at {place}"
    return "teacher and student are finite at the fields of the data, but not what is made of them"


def _seen(
    model: Model, data: Prepared, weights: Weights, rule: Rule
) -> Iterator[tuple[str, Attention, Float[np.ndarray, "n tokens rank"]]]:
    """Functions with the fields of the data set, and with those of the exact test error."""
    reduced, teacher_weights, positions, _ = data
    h, x, _ = both_fields(model, weights, teacher_weights, positions, rule)
    yield "teacher", model.teacher, _first(project(reduced.z - positions, teacher_weights))
    yield "student", model.student, _first(project(reduced.z, weights))
    yield "teacher", model.teacher, _first(h)
    yield "student", model.student, _first(x)


def _first(fields: object) -> Float[np.ndarray, "n tokens rank"]:
    return np.moveaxis(np.asarray(fields), -1, 0)
