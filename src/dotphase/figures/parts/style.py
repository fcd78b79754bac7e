"""One look for all figures: colour-blind safe, readable in print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np

from dotphase.errors import InvalidInput
from dotphase.storage.files import replacing
from dotphase.storage.paths import FIGURES, check_writable

#: Colours of Okabe and Ito, by what they stand for.
COLOURS = {
    "semantic": "#0072B2",
    "positional": "#D55E00",
    "uninformed": "#7F7F7F",
    "mixed": "#009E73",
    "linear": "#CC79A7",
    "random": "#56B4E9",
    "bayes": "#E69F00",
}
#: The same on a dark page, from the lighter ones of Okabe and Ito.
COLOURS_ON_DARK = COLOURS | {
    "semantic": "#56B4E9",
    "positional": "#E69F00",
    "uninformed": "#A7A7A7",
}
MARKERS = {"semantic": "o", "positional": "s", "uninformed": "^", "mixed": "D"}
#: Lines of the two branches, where colours stand for something else.
STYLES = {"semantic": "-", "positional": "--"}
#: Ink on maps, which are bright on every page, and grey for what belongs to nothing.
DARK, GREY = "#222222", "#666666"
#: A smaller file may change this share of the pixels by more than this much, of 255.
SHARE, SHIFT = 0.002, 12

_SETTINGS: Any = {
    "font.size": 9,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.6,
    "legend.frameon": True,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "mathtext.fontset": "cm",
    "savefig.dpi": 160,
    "svg.hashsalt": "dotphase",
}

#: Ink, page, grid and quiet areas, for light and for dark pages.
_SHADES = {
    "light": ("#222222", "#FFFFFF", "#E3E3E3", "#DDDDDD"),
    "dark": ("#DADADA", "#15181C", "#33383E", "#3A3F46"),
}
_shade: ContextVar[str] = ContextVar("shade", default="light")


@contextmanager
def theme(shade: Literal["light", "dark"] | str) -> Iterator[None]:
    """Draw what is drawn inside for light or for dark pages."""
    token = _shade.set(shade if shade in _SHADES else "light")
    try:
        yield
    finally:
        _shade.reset(token)


def ink() -> str:
    """Colour of text and of lines that belong to no branch."""
    return _SHADES[_shade.get()][0]


def page() -> str:
    """Colour of the page, for hollow markers."""
    return _SHADES[_shade.get()][1]


def quiet() -> str:
    """Colour of areas where there is nothing to show."""
    return _SHADES[_shade.get()][3]


def _settings() -> Any:
    text, background, lines, _ = _SHADES[_shade.get()]
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    pages = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    return {
        **_SETTINGS,
        "grid.color": lines,
        "hatch.color": DARK,
        **dict.fromkeys(inks, text),
        **dict.fromkeys(pages, background),
    }


#: Axes of the user's own that the next figure is drawn into.
_given: ContextVar[Any] = ContextVar("given", default=None)


@contextmanager
def drawing_into(axes: Any) -> Iterator[None]:
    """Draw the figure made inside into Matplotlib axes that are there already, if any are given."""
    token = _given.set(axes)
    try:
        yield
    finally:
        _given.reset(token)


def _user_axes(given: Any, rows: int, columns: int, squeeze: bool) -> tuple[Any, Any]:
    """The figure of the user's axes, and the axes in the shape of the panels."""
    panels = np.atleast_1d(np.asarray(given, object))
    if panels.size != rows * columns:
        what = "a single Matplotlib axes" if rows * columns == 1 else f"{rows * columns} axes"
        raise InvalidInput("ax", f"{panels.size} axes", f"must be {what}, one for each panel")
    panels = panels.reshape(rows, columns)
    figure = panels.flat[0].figure
    if not squeeze:
        return figure, panels
    return figure, panels.flat[0] if panels.size == 1 else panels.squeeze()


@contextmanager
def house_style() -> Iterator[Any]:
    """`matplotlib.pyplot` in the style of the project, without changing the user's settings.

    Figures made inside are taken out of pyplot's list of open ones at the end: they are returned
    to the caller, and would otherwise pile up.
    """
    if matplotlib.get_backend().lower() not in ("agg", "module://matplotlib_inline.backend_inline"):
        matplotlib.use("agg", force=False)
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    with matplotlib.rc_context(_settings()):
        try:
            yield pyplot
        finally:
            for number in set(pyplot.get_fignums()) - before:
                pyplot.close(number)


@contextmanager
def drawing(
    path: str | Path | None,
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float],
    **axes: Any,
) -> Iterator[tuple[Any, Any]]:
    """A figure with its axes in the style of the project, written to `path` at the end if given.

    Parameters
    ----------
    path : path, optional
        Where to write it (.png, .svg or .pdf).
    rows, columns, size
        Panels, and inches of the whole.
    **axes
        As for `matplotlib.pyplot.subplots`.
    """
    if path is not None:
        check_writable("path", path, FIGURES)
    with house_style() as pyplot:
        given = _given.get()
        if given is None:
            shape = {"figsize": size, "layout": "constrained"}
            figure, panels = pyplot.subplots(rows, columns, **shape, **axes)
        else:
            figure, panels = _user_axes(given, rows, columns, axes.get("squeeze", True))
        yield figure, panels
        if path is not None:
            save(figure, path)


def save(figure: Any, path: str | Path, *, small: bool = False) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending of `path`, with fixed metadata.

    Parameters
    ----------
    small : bool
        Give a PNG a palette where that changes no colour visibly: a third of the size.
    """
    target = Path(path)
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    kind = target.suffix.lower()
    with replacing(target) as part:
        figure.savefig(part, metadata=metadata.get(kind), facecolor=figure.get_facecolor())
        if small and kind == ".png":
            _shrink(part)
    return target


def _shrink(path: Path) -> None:
    """Give a PNG a palette of 128 colours, unless that is seen, as in maps of many colours."""
    from PIL import Image

    with Image.open(path) as drawn:
        full = drawn.convert("RGB")
    few = full.quantize(128, dither=Image.Dither.NONE)
    shift = np.abs(np.asarray(full, int) - np.asarray(few.convert("RGB"), int)).max(axis=-1)
    # Single pixels at the edges of lines may change; areas may not.
    unseen = np.mean(shift > SHIFT) < SHARE
    (few if unseen else full).save(path, optimize=True)
