"""Text of results: numbers with standard errors, descriptions for terminal and notebook."""

import html
from dataclasses import dataclass

import numpy as np

#: Beginnings of lines that warn; printed in red.
WARNING_PREFIXES = ("NOT TRUSTED", "NOT CONVERGED", "NO RESULT", "NOT DETERMINED")

#: Values below this are written in scientific notation.
SCIENTIFIC_BELOW = 1e-5

#: Labels of quantities.
LABELS = {"train_loss": "training loss", "test_error": "test error"}


@dataclass(frozen=True)
class Description:
    """Content of a printed result."""

    title: str  #: one line
    rows: tuple[tuple[str, str], ...] = ()  #: names and values
    notes: tuple[str, ...] = ()  #: sentences below the tables
    #: cells of a second table with several columns; its first row has their names
    table: tuple[tuple[str, ...], ...] = ()

    def text(self) -> str:
        """Return lines for a terminal."""
        width = max([13, *(len(name) for name, _ in self.rows)])
        lines = [f"  {name:<{width}} {value}".rstrip() for name, value in self.rows]
        widths = [max(map(len, column)) for column in zip(*self.table, strict=True)]
        for row in self.table:
            cells = zip(row, widths, strict=True)
            lines.append("  " + "  ".join(f"{cell:>{width}}" for cell, width in cells))
        return "\n".join([self.title, *lines, *(f"  {note}" for note in self.notes)])

    def html(self) -> str:
        """Return an HTML table for a notebook."""
        cell = 'style="text-align:left"'
        rows = "".join(
            f"<tr><th {cell}>{html.escape(name)}</th><td {cell}>{html.escape(value)}</td></tr>"
            for name, value in self.rows
        )
        columns = "".join(
            "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row) + "</tr>"
            for row, kind in zip(self.table, ["th", *["td"] * len(self.table)], strict=False)
        )
        notes = "".join(f"<div{_color(note)}>{html.escape(note)}</div>" for note in self.notes)
        title = f"<div{_color(self.title)}><b>{html.escape(self.title)}</b></div>"
        return f"{title}<table>{rows}</table>{columns and f'<table>{columns}</table>'}{notes}"


def _color(line: str) -> str:
    return ' style="color:#b3261e"' if line.startswith(WARNING_PREFIXES) else ""


class Printable:
    """Base class of results: `print` and notebooks show `description`, `repr` its title.

    A dataclass inherits the one-line `repr` if it is declared with ``repr=False``.
    """

    @property
    def description(self) -> Description:
        """Title, rows and notes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.description.title}>"

    def __str__(self) -> str:
        return self.description.text()

    def _repr_html_(self) -> str:
        return self.description.html()


def format_with_model_error(value: float, stderr: float, model_error: float) -> str:
    """Format a number with its quadrature error and, unless negligible, the model error.

    The model error estimates the effect of replica symmetry breaking.
    """
    text = format_value(value, stderr)
    if not model_error > stderr / 10 > 0:
        return text
    digits = _significant_digits(model_error)
    return f"{text} (points) ± {model_error:.{digits}f} (symmetry breaking)"


def format_value(value: float | None, stderr: float | None = None) -> str:
    """Format a number and its standard error with matching digits, ``0.11480 ± 0.00012``.

    Examples
    --------
    >>> dp.results.format_value(0.114801, 0.00012)
    '0.11480 ± 0.00012'
    """
    if value is None or np.isnan(value):
        return "none"
    if stderr is None:
        return f"{value:.6g}"
    if abs(value) < 1e-9 and stderr < 1e-9:
        return "0"
    if 0 < stderr < 1e-9 * abs(value):
        return f"{value:.6g}"  # exact but for rounding
    if not np.isfinite(value) or not np.isfinite(stderr) or stderr <= 0:
        suffix = "" if stderr == 0 else f" ± {stderr:.1g}"
        return f"{value:.6g}{suffix}"
    if abs(value) < SCIENTIFIC_BELOW:
        return f"{value:.3g} ± {stderr:.2g}"
    # A mean smaller than its error keeps its first two digits: it is not rounded to nothing.
    digits = _significant_digits(min(stderr, abs(value)))
    return f"{value:.{digits}f} ± {stderr:.{digits}f}"


def _significant_digits(error: float) -> int:
    """Return the number of decimals that shows two significant digits of an error."""
    return int(np.clip(1 - np.floor(np.log10(error)), 0, 12))
