"""The student is aligned with the positional encodings: m > 0, theta = 0."""

from __future__ import annotations

from dotphase.model import Model
from dotphase.model.symmetry import positional_column
from dotphase.theory.branch import Branch, aligned_overlaps
from dotphase.theory.overlaps import Overlaps


def initial_overlaps(model: Model) -> Overlaps:
    """The first column through which positions change the student is aligned with them."""
    return aligned_overlaps(model, positional=positional_column(model))


BRANCH = Branch(initial_overlaps, vanishing=frozenset({"theta"}), continue_upwards=True)
