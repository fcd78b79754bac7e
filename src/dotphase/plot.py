"""Figures, each one function of a result: ``dp.plot.curve``, ``dp.plot.diagram``, ...

The figures are the files of `dotphase.figures`, and each file has one function of its own name, so
that a new figure is one new file. All of them take a `path` to write to (.png, .svg or .pdf) and
return the Matplotlib figure.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from dotphase import figures


def names() -> list[str]:
    """Names of all figures; none is imported."""
    return sorted(info.name for info in pkgutil.iter_modules(figures.__path__) if not info.ispkg)


__all__ = names()


def __getattr__(name: str) -> Any:
    if name not in names():
        raise AttributeError(f"there is no figure {name!r}; known are {', '.join(names())}")
    value = globals()[name] = getattr(import_module(f"dotphase.figures.{name}"), name)
    return value


def __dir__() -> list[str]:
    return names()
