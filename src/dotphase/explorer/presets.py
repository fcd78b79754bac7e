"""Interesting points, offered by the page as presets."""

from typing import Any

from dotphase.explorer.point import Point

#: Name, description, and parameters that differ from the paper's case.
PRESETS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("The paper's figure", "Just above the transition of figure 2: both minima exist, and the "
     "semantic one is lower.", {}),
    ("At the transition", "Both training losses are equal.", {"alpha": 1.25}),
    ("Few data", "Below the transition: the lowest minimum is positional.", {"alpha": 0.8}),
    ("Many data", "Far above the transition the positional minimum is much worse.",
     {"alpha": 2.4}),
    ("Purely semantic", "The teacher attends by meaning only. Positions are useless unless data "
     "are few.", {"omega": 0.0, "alpha": 1.5}),
    ("Mostly positional", "Half of the teacher's attention depends on positions.",
     {"omega": 0.5, "alpha": 2.0}),
    ("The other A", "Another positional matrix: each token attends to the other one.",
     {"mixing": "other"}),
    ("Two columns", "A student of rank two can learn both mechanisms at once.",
     {"student_rank": 2, "alpha": 2.0}),
)  # fmt: skip


def presets(default: Point) -> list[dict[str, Any]]:
    """The presets of a page; a user's own family has its default alone."""
    if not default.family.is_paper:
        return [{"name": "As given", "description": "", "point": default.to_dict()}]
    return [
        {"name": name, "description": description, "point": Point(**changes).to_dict()}
        for name, description, changes in PRESETS
    ]
