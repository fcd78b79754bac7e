"""The figures and tables of the reproduction, by name, in the order of the report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dotphase.errors import InvalidInput

if TYPE_CHECKING:
    from dotphase.report.item import Item

#: Name on the command line, module under `dotphase.report.items`: what is in the paper.
PAPER = {
    "histogram": "histogram",
    "transition": "transition",
    "phase-standard": "phase_standard",
    "phase-other": "phase_other",
    "concentration": "concentration",
    "slices": "slices",
    "rank2": "rank2",
    "starts": "starts",
    "distances": "distances",
    "gamp": "gamp",
    "quadrature": "quadrature",
}

#: The same for what goes beyond it.
BEYOND = {
    "structured": "structured",
    "lengths": "lengths",
    "untied": "untied",
    "dynamics": "dynamics",
    "bayes": "bayes",
    "limits": "limits",
}

ITEMS = PAPER | BEYOND


def check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that were asked for, or all of the paper; in the order of the report."""
    for name in names:
        if name not in ITEMS:
            raise InvalidInput("NAME", name, "must be one of " + ", ".join(ITEMS))
    return tuple(name for name in ITEMS if name in (names or PAPER))


def load(name: str) -> Item:
    """The item of a name."""
    item: Item = import_module(f"dotphase.report.items.{ITEMS[name]}").ITEM
    return item
