"""The student is aligned with nothing: m = theta = 0."""

from __future__ import annotations

from dotphase.theory.branch import Branch, aligned

BRANCH = Branch(start=aligned, vanishing=frozenset({"m", "theta"}))
