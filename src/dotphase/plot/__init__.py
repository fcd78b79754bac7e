"""Figures, each one function of a result: ``dp.plot.curve``, ``dp.plot.diagram``, ...

The figures are the files of `dotphase.figures`, and each file has one function of its own name, so
that a new figure is one new file. All of them take a `path` to write to (.png, .svg or .pdf) and
return the Matplotlib figure; with `ax=`, an axes or as many as there are panels, they draw into a
figure of yours.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import wraps
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
    function = getattr(import_module(f"dotphase.figures.{name}"), name)
    value = globals()[name] = _with_axes(function)
    return value


def _with_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A figure that also takes `ax`."""
    from dotphase.figures.parts.style import use_axes

    @wraps(function)
    def drawn(*args: Any, ax: Any = None, **kwargs: Any) -> Any:
        with use_axes(ax):
            return function(*args, **kwargs)

    return drawn


def __dir__() -> list[str]:
    return names()
