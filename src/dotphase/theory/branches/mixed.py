"""The student is aligned with both: m > 0, theta > 0."""

from __future__ import annotations

from dotphase.model import Model
from dotphase.theory.branch import Branch, aligned_overlaps
from dotphase.theory.overlaps import Overlaps


def initial_overlaps(model: Model) -> Overlaps:
    """The last column is positional, those before it semantic; a single column is both."""
    last = model.student_rank - 1
    return aligned_overlaps(model, semantic=min(model.teacher_rank, last or 1), positional=last)


BRANCH = Branch(initial_overlaps)
