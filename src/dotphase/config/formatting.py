"""How results read: numbers with their errors, and one description for terminal and notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np

#: Words with which a line begins that says what is wrong.
ALARMS = ("NOT TRUSTED", "NOT CONVERGED", "NO RESULT", "NOT DETERMINED")

#: Numbers below this are written with an exponent.
TINY = 1e-5

#: Results that are shown in words.
LABELS = {"train_loss": "training loss", "test_error": "test error"}


@dataclass(frozen=True)
class Description:
    """What a result says of itself.

    Attributes
    ----------
    head : what it is, in one line
    rows : names and values
    notes : sentences below
    """

    head: str
    rows: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """In lines, for a terminal."""
        width = max([13, *(len(name) for name, _ in self.rows)])
        lines = [f"  {name:<{width}} {value}".rstrip() for name, value in self.rows]
        return "\n".join([self.head, *lines, *(f"  {note}" for note in self.notes)])

    def html(self) -> str:
        """As a table, for a notebook."""
        cell = 'style="text-align:left"'
        rows = "".join(
            f"<tr><th {cell}>{html.escape(name)}</th><td {cell}>{html.escape(value)}</td></tr>"
            for name, value in self.rows
        )
        notes = "".join(f"<div{_alarm(note)}>{html.escape(note)}</div>" for note in self.notes)
        head = f"<div{_alarm(self.head)}><b>{html.escape(self.head)}</b></div>"
        return f"{head}<table>{rows}</table>{notes}"


def _alarm(line: str) -> str:
    return ' style="color:#b3261e"' if line.startswith(ALARMS) else ""


class Shown:
    """A result that reads well: `print` and notebooks show its `description`."""

    @property
    def description(self) -> Description:
        """What it says of itself."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.description.text()

    def _repr_html_(self) -> str:
        return self.description.html()


def with_errors(value: float, points: float, breaking: float) -> str:
    """A number with its standard error and, where it counts, that of replica symmetry."""
    shown = with_error(value, points)
    if not breaking > points / 10 > 0:
        return shown
    digits = int(np.clip(1 - np.floor(np.log10(breaking)), 0, 12))
    return f"{shown} (points) + {breaking:.{digits}f} (symmetry breaking)"


def with_error(value: float | None, error: float | None = None) -> str:
    """A number and its standard error with matching digits, ``0.11480 ± 0.00012``."""
    if value is None or np.isnan(value):
        return "none"
    if error is None:
        return f"{value:.6g}"
    if abs(value) < 1e-9 and error < 1e-9:
        return "0"
    if not np.isfinite(value) or not np.isfinite(error) or error <= 0:
        suffix = "" if error == 0 else f" ± {error:.1g}"
        return f"{value:.6g}{suffix}"
    if abs(value) < TINY:
        return f"{value:.3g} ± {error:.2g}"
    digits = int(np.clip(1 - np.floor(np.log10(error)), 0, 12))
    return f"{value:.{digits}f} ± {error:.{digits}f}"
