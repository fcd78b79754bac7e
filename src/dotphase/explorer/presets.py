"""Settings worth looking at, by what there is to see."""

from __future__ import annotations

from typing import Any

from dotphase.explorer.point import Point

#: A name, what to look at, and what differs from the paper's case.
PRESETS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("The paper's figure", "Just above the transition of figure 2: both minima exist, the "
     "semantic one is lower.", {}),
    ("At the transition", "Both training losses are the same.", {"alpha": 1.25}),
    ("Few data", "Below the transition: the lowest minimum is positional.", {"alpha": 0.8}),
    ("Many data", "Far above it the positional minimum is much worse.", {"alpha": 2.4}),
    ("Purely semantic", "A teacher that looks at meaning only: positions are of no use from few "
     "data on.", {"omega": 0.0, "alpha": 1.5}),
    ("Mostly positional", "A teacher that looks at positions more than at meaning.",
     {"omega": 0.5, "alpha": 2.0}),
    ("The other A", "Another positional matrix: each token looks at the other one.",
     {"mixing": "other"}),
    ("Two columns", "A student of rank two may learn both mechanisms at once.",
     {"student_rank": 2, "alpha": 2.0}),
)  # fmt: skip


def presets(default: Point) -> list[dict[str, Any]]:
    """The settings that the page offers; a family of the user's own has its default alone."""
    if not default.family.is_paper:
        return [{"name": "As given", "words": "", "point": default.to_dict()}]
    return [
        {"name": name, "words": words, "point": Point(**changes).to_dict()}
        for name, words, changes in PRESETS
    ]
