"""Figures, each one function of a result: ``dp.plot.curve``, ``dp.plot.diagram``, ...

Each file of `dotphase.figures` defines one function of the same name, so that a new figure is one
new file. All figures take a `path` to write to (.png, .svg or .pdf) and return the Matplotlib
figure. With `ax=`, one Matplotlib axes or one for each panel, they draw into an existing figure.
`dotphase.plot.style` has the building blocks.
"""

import pkgutil
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from dotphase import figures


def names() -> list[str]:
    """Return the names of all figures without importing any."""
    return sorted(info.name for info in pkgutil.iter_modules(figures.__path__) if not info.ispkg)


__all__ = names()


def __getattr__(name: str) -> Any:
    if name == "style":
        return import_module("dotphase.plot.style")
    if name not in names():
        raise AttributeError(f"there is no figure {name!r}; known are {', '.join(names())}")
    function = getattr(import_module(f"dotphase.figures.{name}"), name)
    value = globals()[name] = _with_axes(function)
    return value


def _with_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument `ax` to a figure."""
    from dotphase.figures.parts.style import use_axes

    @wraps(function)
    def draw(*args: Any, ax: Any = None, **kwargs: Any) -> Any:
        with use_axes(ax):
            return function(*args, **kwargs)

    return draw


def __dir__() -> list[str]:
    return names()
