"""The student is aligned with the teacher's weights: theta > 0, m = 0."""

from __future__ import annotations

from dotphase.model import Model
from dotphase.theory.branch import Branch, aligned_overlaps
from dotphase.theory.overlaps import Overlaps


def initial_overlaps(model: Model) -> Overlaps:
    """Overlaps with as many columns aligned as the teacher has."""
    return aligned_overlaps(model, semantic=min(model.teacher_rank, model.student_rank))


BRANCH = Branch(initial_overlaps, vanishing=frozenset({"m"}))
