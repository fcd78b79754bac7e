"""Message passing beside its state evolution, iteration by iteration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotphase.figures.style import house_style, save

if TYPE_CHECKING:
    from dotphase.message_passing.result import MessagePassing

#: Overlaps, how they are written, and their colours.
SHOWN = (("q", "$q$", "#3b6fb6"), ("m", "$|m|$", "#c4572e"), ("theta", r"$|\theta|$", "#3f8f5b"))


def plot_iterations(result: MessagePassing, path: str | Path | None = None) -> Any:
    """Measured overlaps (points, with standard errors) and predicted ones (lines).

    Parameters
    ----------
    result : MessagePassing
        From `dotphase.message_passing`.
    path : path, optional
        Where to write the figure (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = [row for row in result.iterations if row["predicted"] is not None]
    place = [row["iteration"] for row in rows]
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(4.6, 3.4), layout="constrained")
        for name, symbol, colour in SHOWN:
            predicted = [row["predicted"][name] for row in rows]
            measured = [row["measured"][name] for row in rows]
            errors = [row["stderr"][name] or 0.0 for row in rows]
            axes.plot(place, predicted, "-", color=colour, lw=1.2, label=symbol)
            axes.errorbar(place, measured, errors, fmt="o", ms=2.5, lw=0.8, color=colour)
        axes.set_xlabel("iteration")
        axes.set_ylabel("overlap (lines: state evolution)")
        axes.set_title(
            rf"{result.start} start, $d = {result.d}$, $\alpha = {result.alpha:g}$, "
            f"{len(result.runs)} runs"
        )
        axes.legend()
        if path is not None:
            save(figure, path)
    return figure
