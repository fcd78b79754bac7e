"""One look for all figures: colour-blind safe, readable in print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

#: Colours of Okabe and Ito, by what they stand for.
COLOURS = {
    "semantic": "#0072B2",
    "positional": "#D55E00",
    "uninformed": "#7F7F7F",
    "mixed": "#009E73",
    "linear": "#CC79A7",
    "bayes": "#E69F00",
    "crossing": "#333333",
}
MARKERS = {"semantic": "o", "positional": "s", "uninformed": "^", "mixed": "D"}

_SETTINGS: Any = {
    "font.size": 9,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
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


@contextmanager
def house_style() -> Iterator[Any]:
    """`matplotlib.pyplot` in the style of the project, without changing the user's settings."""
    if matplotlib.get_backend().lower() not in ("agg", "module://matplotlib_inline.backend_inline"):
        matplotlib.use("agg", force=False)
    from matplotlib import pyplot

    with matplotlib.rc_context(_SETTINGS):
        yield pyplot


def save(figure: Any, path: str | Path) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending of `path`, with fixed metadata."""
    target = Path(path)
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(target, metadata=metadata.get(target.suffix.lower()))
    return target
