"""Deep attention whose last layer alone is aligned with the teacher."""

from __future__ import annotations

from dotphase.model import Model
from dotphase.model.deep import require_layers
from dotphase.theory.branch import Branch, aligned_overlaps
from dotphase.theory.overlaps import Overlaps


def initial_overlaps(model: Model) -> Overlaps:
    """The last column is semantic, the others are uninformed."""
    return aligned_overlaps(model, semantic=[model.student_rank - 1])


BRANCH = Branch(
    initial_overlaps, vanishing=frozenset({"m"}), variant_of="semantic", objection=require_layers
)
