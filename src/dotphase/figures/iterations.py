"""Message passing beside its state evolution, iteration by iteration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotphase.figures.parts.lines import run_title
from dotphase.figures.parts.style import drawing

if TYPE_CHECKING:
    from dotphase.message_passing.result import MessagePassing

#: Overlaps, how they are written, and their colours.
SHOWN = (("q", "$q$", "#3b6fb6"), ("m", "$|m|$", "#c4572e"), ("theta", r"$|\theta|$", "#3f8f5b"))


def iterations(result: MessagePassing, path: str | Path | None = None) -> Any:
    """Measured overlaps (points, with standard errors) and predicted ones (lines).

    Parameters
    ----------
    result : MessagePassing
        From `dotphase.amp`.

    Examples
    --------
    >>> passing = dp.amp(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, iterations=5)
    >>> figure = dp.plot.iterations(passing, "iterations.png")
    """
    rows = [row for row in result.iterations if row["predicted"] is not None]
    place = [row["iteration"] for row in rows]
    with drawing(path, size=(4.6, 3.4)) as (figure, axis):
        for name, symbol, colour in SHOWN:
            predicted = [row["predicted"][name] for row in rows]
            measured = [row["measured"][name] for row in rows]
            errors = [row["stderr"][name] or 0.0 for row in rows]
            axis.plot(place, predicted, "-", color=colour, lw=1.2, label=symbol)
            axis.errorbar(place, measured, errors, fmt="o", ms=2.5, lw=0.8, color=colour)
        axis.set(xlabel="iteration", ylabel="overlap (lines: state evolution)")
        axis.set_title(f"{run_title(result)}, {len(result.runs)} runs")
        axis.legend()
    return figure
