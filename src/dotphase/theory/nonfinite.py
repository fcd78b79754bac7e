"""Which function is not finite where averages of the theory are not, or mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np

from dotphase.model.nonfinite import diagnose_functions
from dotphase.model.validation import where_not_finite
from dotphase.theory.expectations import AverageQuery
from dotphase.theory.state_evolution import draw_fields

if TYPE_CHECKING:
    from dotphase.theory.point_iteration import Evaluation

_drawn = eqx.filter_jit(draw_fields)


def diagnose_averages(there: Evaluation) -> str | None:
    """In words, which function is not finite at which of the fields that were averaged over.

    The proximal map stays where a derivative is no number, so that averages may be finite.
    """
    model, query = there.problem.model, there.query
    if not model.plain or not isinstance(query, AverageQuery):
        return None
    shape = (model.length, model.student_rank, -1)
    for block, track in zip(query.blocks, there.answer.tracks, strict=True):
        fields = _drawn(model, query.overlaps, block)
        omega, x = (np.asarray(part).reshape(shape) for part in (fields.omega, track.x))
        found = diagnose_functions(model, [fields.h], [omega, x])
        if found is None:
            # It may have failed on the way, at fields that are not kept.
            place = where_not_finite(np.moveaxis(omega, -1, 0), np.moveaxis(x, -1, 0))
            found = place and f"the proximal map is lost from {place}"
        if found is not None:
            return found
    return None
