"""Message passing and its state evolution by iteration."""

from pathlib import Path
from typing import Any

from dotphase.figures.parts.lines import AMP_FIELDS, AMP_OVERLAPS, plot_message_passing, run_title
from dotphase.figures.parts.style import new_figure
from dotphase.gamp.result import MessagePassing


def iterations(result: MessagePassing, path: str | Path | None = None) -> Any:
    """Plot measured overlaps as points with standard errors, and predicted ones as lines.

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
    # A single run has no standard error: None becomes 0.
    overlaps = {
        name: [[row[part][name] or 0.0 for row in rows] for part in AMP_FIELDS]
        for name in AMP_OVERLAPS
    }
    scale = float(result.model.rho[0])
    with new_figure(path, size=(4.6, 3.4)) as (figure, axis):
        plot_message_passing(axis, [row["iteration"] for row in rows], overlaps, scale)
        axis.set_ylabel("overlap (lines: state evolution)")
        axis.set_title(f"{run_title(result)}, {len(result.runs)} runs")
        axis.legend()
    return figure
