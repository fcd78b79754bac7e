"""The figures and tables of the reproduction: each file defines one `ITEM`."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from dotphase import InvalidInput

if TYPE_CHECKING:
    from reproduction.item import Item

#: Items of the paper, in the order of the report.
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
#: Items beyond the paper. The items of other files follow them.
BEYOND = ("structured", "lengths", "untied", "dynamics", "descents", "bayes", "limits", "baselines")


class Items(Mapping[str, "Item"]):
    """Items by name, each imported at first use: the files of this folder and registered ones."""

    def __init__(self) -> None:
        self._registered: dict[str, Item] = {}

    def register(self, name: str, item: Item) -> None:
        """Add an item in this process."""
        self._registered[name] = item

    def unregister(self, name: str) -> None:
        """Remove a registered item."""
        del self._registered[name]

    def __getitem__(self, name: str) -> Item:
        if name in self._registered:
            return self._registered[name]
        if name not in list(self):
            raise KeyError(name)
        item: Item = import_module(f"{__name__}.{name.replace('-', '_')}").ITEM
        return item

    def __iter__(self) -> Iterator[str]:
        files = {module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)}
        ordered = (*PAPER, *BEYOND)
        yield from ordered
        yield from sorted((files | set(self._registered)) - set(ordered))

    def __len__(self) -> int:
        return sum(1 for _ in self)


ITEMS = Items()


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort the requested items, by default those of the paper, in the order of the report."""
    requested = tuple(names) or PAPER
    for name in requested:
        if name not in list(ITEMS):
            raise InvalidInput("NAME", name, "must be one of " + ", ".join(ITEMS))
    return tuple(name for name in ITEMS if name in requested)
