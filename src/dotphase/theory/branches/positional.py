"""The student is aligned with the positional encodings: m > 0, theta = 0."""

from __future__ import annotations

from dotphase.model import Model
from dotphase.theory.branch import Branch, aligned
from dotphase.theory.overlaps import Overlaps


def start(model: Model) -> Overlaps:
    """The first column is aligned with the positions."""
    return aligned(model, positional=0)


BRANCH = Branch(start, vanishing=frozenset({"theta"}), from_few=True)
