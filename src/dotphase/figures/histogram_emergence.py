"""Which mechanism free networks find, against the number of training sequences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotphase.figures.parts.style import COLORS, MARKERS, new_figure

if TYPE_CHECKING:
    from dotphase.histogram import Emergence


def histogram_emergence(found: Emergence, path: str | Path | None = None) -> Any:
    """Scores of both mechanisms, and held-out accuracy, against the number of sequences.

    Parameters
    ----------
    found : Emergence
        From `dotphase.histogram.emergence`.

    Examples
    --------
    >>> found = dp.histogram.emergence([60], 1, 20, task=dp.histogram.Task(samples=99), dimension=8)
    >>> figure = dp.plot.histogram_emergence(found, "emergence.png")
    """
    curves = {
        "semantic": (found.semantic_score, "semantic score"),
        "positional": (found.positional_score, "positional score"),
        "uninformed": (found.accuracy, "held-out accuracy"),
    }
    with new_figure(path, size=(4.6, 3.2)) as (figure, axes):
        for kind, (values, label) in curves.items():
            marker, color = MARKERS[kind], COLORS[kind]
            axes.plot(found.samples, values.mean(axis=1), color=color, label=label)
            for run in range(values.shape[1]):
                axes.plot(found.samples, values[:, run], marker, color=color, ms=3.5, alpha=0.6)
        axes.set(xscale="log", xlabel="training sequences", ylabel="score, or accuracy")
        axes.set_ylim(min(0.0, found.semantic_score.min()) - 0.04, 1.04)
        axes.set_title(f"free networks, {found.steps} steps", fontsize=9)
        axes.legend()
    return figure
