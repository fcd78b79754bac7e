"""Mechanisms of free networks against the number of training sequences."""

from pathlib import Path
from typing import Any

from dotphase.figures.parts.style import COLORS, MARKERS, new_figure
from dotphase.histogram import Emergence


def histogram_emergence(result: Emergence, path: str | Path | None = None) -> Any:
    """Plot the scores of both mechanisms and the held-out accuracy by number of sequences.

    Parameters
    ----------
    result : Emergence
        From `dotphase.histogram.emergence`.

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=99), "dimension": 8}
    >>> result = dp.histogram.emergence([60], runs=1, steps=20, **small)
    >>> figure = dp.plot.histogram_emergence(result, "emergence.png")
    """
    curves = {
        "semantic": (result.semantic_score, "semantic score"),
        "positional": (result.positional_score, "positional score"),
        "uninformed": (result.accuracy, "held-out accuracy"),
    }
    with new_figure(path, size=(4.6, 3.2)) as (figure, axes):
        for kind, (values, label) in curves.items():
            marker, color = MARKERS[kind], COLORS[kind]
            axes.plot(result.samples, values.mean(axis=1), color=color, label=label)
            for run in range(values.shape[1]):
                axes.plot(result.samples, values[:, run], marker, color=color, ms=3.5, alpha=0.6)
        axes.set(xscale="log", xlabel="training sequences", ylabel="score, or accuracy")
        axes.set_ylim(min(0.0, result.semantic_score.min()) - 0.04, 1.04)
        axes.set_title(f"free networks, {result.steps} steps", fontsize=9)
        axes.legend()
    return figure
