"""Find the function that is not finite where averages of the theory are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np

from dotphase.model.nonfinite import diagnose_functions
from dotphase.model.validation import where_not_finite
from dotphase.numerics.proximal_map import ProxState
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.state_evolution import draw_fields

if TYPE_CHECKING:
    from dotphase.theory.point_evaluator import EvaluatedPoint

_draw_fields = eqx.filter_jit(draw_fields)


def diagnose_averages(point: EvaluatedPoint) -> str | None:
    """Describe the function that is not finite, and the fields where it is not.

    The proximal map does not move where a derivative is not finite, so averages may be finite.
    """
    model, overlaps = point.map.model, point.overlaps
    if not model.plain or not isinstance(overlaps, Overlaps):
        return None
    shape = (model.length, model.student_rank, -1)
    blocks = point.map.evaluator.blocks(overlaps, point.log2_points, point.seed)
    states: tuple[ProxState, ...] = point.expectations.prox_states
    for block, state in zip(blocks, states, strict=True):
        fields = _draw_fields(model, overlaps, block)
        omega, x = (np.asarray(part).reshape(shape) for part in (fields.omega, state.x))
        cause = diagnose_functions(model, [fields.h], [omega, x])
        if cause is None:
            # It may have failed at an earlier iterate of the proximal map, which is not kept.
            position = where_not_finite(np.moveaxis(omega, -1, 0), np.moveaxis(x, -1, 0))
            cause = position and f"the proximal map is lost from {position}"
        if cause is not None:
            return cause
    return None
