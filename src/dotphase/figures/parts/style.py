"""Style of all figures: color-blind safe, readable in print, for light and dark pages."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np

from dotphase.errors import InvalidInput
from dotphase.runtime.shared_setting import SharedSetting
from dotphase.storage.files import atomic_write
from dotphase.storage.paths import FIGURES, check_writable

#: Okabe-Ito color of each mechanism or baseline.
COLORS = {
    "semantic": "#0072B2",
    "positional": "#D55E00",
    "uninformed": "#7F7F7F",
    "mixed": "#009E73",
    "linear": "#CC79A7",
    "random": "#56B4E9",
    "bayes": "#E69F00",
}
#: The same on dark pages, from the lighter Okabe-Ito colors.
DARK_THEME_COLORS = COLORS | {
    "semantic": "#56B4E9",
    "positional": "#E69F00",
    "uninformed": "#A7A7A7",
}
MARKERS = {"semantic": "o", "positional": "s", "uninformed": "^", "mixed": "D"}
#: Line style of each branch in figures whose colors have another meaning.
LINE_STYLES = {"semantic": "-", "positional": "--"}
#: Color of lines and text on maps, which are bright on every page.
MAP_INK = "#222222"
#: Color of legend entries that belong to no branch.
GRAY = "#666666"
#: Largest invisible change of a color channel, of 255.
MAX_PIXEL_CHANGE = 12
#: Fraction of pixels that a smaller file may change visibly.
MAX_CHANGED_FRACTION = 0.002

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
    """Use the colors of light or dark pages inside this context."""
    token = _shade.set(shade if shade in _SHADES else "light")
    try:
        yield
    finally:
        _shade.reset(token)


def ink_color() -> str:
    """Return the color of text and of lines that belong to no branch."""
    return _SHADES[_shade.get()][0]


def page_color() -> str:
    """Return the color of the page, which fills open markers."""
    return _SHADES[_shade.get()][1]


def empty_color() -> str:
    """Return the color of areas without values."""
    return _SHADES[_shade.get()][3]


def _settings() -> Any:
    text, background, lines, _ = _SHADES[_shade.get()]
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    pages = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    return {
        **_SETTINGS,
        "grid.color": lines,
        "hatch.color": MAP_INK,
        **dict.fromkeys(inks, text),
        **dict.fromkeys(pages, background),
    }


#: The caller's axes, which the next figure is drawn into.
_user_axes: ContextVar[Any] = ContextVar("user_axes", default=None)


@contextmanager
def use_axes(axes: Any) -> Iterator[None]:
    """Draw the next figure into existing Matplotlib axes, unless `axes` is None."""
    token = _user_axes.set(axes)
    try:
        yield
    finally:
        _user_axes.reset(token)


def _arrange(axes: Any, rows: int, columns: int, squeeze: bool) -> tuple[Any, Any]:
    """Return the figure of the given axes, and the axes in the shape of the panels."""
    panels = np.atleast_1d(np.asarray(axes, object))
    if panels.size != rows * columns:
        needed = "a single Matplotlib axes" if rows * columns == 1 else f"{rows * columns} axes"
        raise InvalidInput("ax", f"{panels.size} axes", f"must be {needed}, one for each panel")
    panels = panels.reshape(rows, columns)
    figure = panels.flat[0].figure
    if not squeeze:
        return figure, panels
    return figure, panels.flat[0] if panels.size == 1 else panels.squeeze()


def _draw_without_windows() -> Callable[[], None]:
    """Draw without windows, and return a function that restores Matplotlib's settings."""
    backend = matplotlib.get_backend()
    if backend.lower() not in ("agg", "module://matplotlib_inline.backend_inline"):
        matplotlib.use("agg", force=False)
    settings = matplotlib.rc_context()
    settings.__enter__()

    def restore() -> None:
        settings.__exit__(None, None, None)
        if matplotlib.get_backend() != backend:
            matplotlib.use(backend, force=False)

    return restore


_user_settings = SharedSetting(_draw_without_windows)


@contextmanager
def house_style() -> Iterator[Any]:
    """Provide `matplotlib.pyplot` in the style of the project, without changing user settings.

    Figures made inside are closed in pyplot at the end, so that open figures do not accumulate;
    the caller still holds them.
    """
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    with _user_settings.hold(), matplotlib.rc_context(_settings()):
        try:
            yield pyplot
        finally:
            for number in set(pyplot.get_fignums()) - before:
                pyplot.close(number)


@contextmanager
def new_figure(
    path: str | Path | None,
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float],
    **axes: Any,
) -> Iterator[tuple[Any, Any]]:
    """Make a figure with its axes in the style of the project, and write it to `path` at the end.

    Parameters
    ----------
    path : path, optional
        File to write (.png, .svg or .pdf).
    rows, columns : int
        Number of panels.
    size : (float, float)
        Width and height of the figure in inches.
    **axes
        Further arguments of `matplotlib.pyplot.subplots`.
    """
    if path is not None:
        check_writable("path", path, FIGURES)
    with house_style() as pyplot:
        user_axes = _user_axes.get()
        if user_axes is None:
            shape = {"figsize": size, "layout": "constrained"}
            figure, panels = pyplot.subplots(rows, columns, **shape, **axes)
        else:
            figure, panels = _arrange(user_axes, rows, columns, axes.get("squeeze", True))
        yield figure, panels
        if path is not None:
            save(figure, path)


def save(figure: Any, path: str | Path, *, small: bool = False) -> Path:
    """Write a figure as PNG, SVG or PDF, by the suffix of `path`, with fixed metadata.

    Parameters
    ----------
    small : bool
        Reduce a PNG to a palette if no color changes visibly: a third of the size.
    """
    target = Path(path)
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    kind = target.suffix.lower()
    content = io.BytesIO()  # in memory: on a full disk Matplotlib raises errors of many kinds
    color = figure.get_facecolor()
    figure.savefig(content, format=kind[1:], metadata=metadata.get(kind), facecolor=color)
    if small and kind == ".png":
        content = _shrink(content)
    with atomic_write(target) as part:
        part.write_bytes(content.getbuffer())
    return target


def _shrink(content: io.BytesIO) -> io.BytesIO:
    """Reduce a PNG to a palette of 128 colors, unless this is visible, as in colorful maps."""
    from PIL import Image

    with Image.open(content) as image:
        full = image.convert("RGB")
    palette = full.quantize(128, dither=Image.Dither.NONE)
    change = np.abs(np.asarray(full, int) - np.asarray(palette.convert("RGB"), int)).max(axis=-1)
    # Single pixels at the edges of lines may change; areas may not.
    invisible = np.mean(change > MAX_PIXEL_CHANGE) < MAX_CHANGED_FRACTION
    smaller = io.BytesIO()
    (palette if invisible else full).save(smaller, format="PNG", optimize=True)
    return smaller
