"""The student is aligned with nothing: m = theta = 0."""

from __future__ import annotations

from dotphase.theory.branch import Branch, aligned_overlaps

BRANCH = Branch(aligned_overlaps, vanishing=frozenset({"m", "theta"}))
