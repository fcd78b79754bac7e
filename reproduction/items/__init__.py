"""The figures and tables of the reproduction: one file each, which defines its `ITEM`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dotphase.config.registry import Registry

if TYPE_CHECKING:
    from reproduction.item import Item

#: What is in the paper, in the order of the report.
PAPER = (
    "released",
    "histogram",
    "transition",
    "phase-standard",
    "phase-other",
    "concentration",
    "slices",
    "rank2",
    "starts",
    "distances",
    "gamp",
    "quadrature",
)
#: What goes beyond it; a new item follows these by itself.
BEYOND = ("structured", "lengths", "untied", "dynamics", "descents", "bayes", "limits", "baselines")

ITEMS: Registry[Item] = Registry("item", __name__, "ITEM", order=PAPER + BEYOND)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names that were asked for, or all of the paper; in the order of the report."""
    wanted = [ITEMS.check(name, "NAME") for name in names] or PAPER
    return tuple(name for name in ITEMS if name in wanted)
