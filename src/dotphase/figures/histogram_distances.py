"""Distances that the counting transformers move, in training and after their release."""

from pathlib import Path
from typing import Any

import numpy as np

from dotphase.errors import InvalidInput
from dotphase.figures.parts.style import COLORS, MARKERS, new_figure
from dotphase.histogram import Experiment


def histogram_distances(result: Experiment, path: str | Path | None = None) -> Any:
    """Plot the distance of each run from its initialization, and its distance after the release.

    Parameters
    ----------
    result : Experiment
        From `dotphase.histogram.run` with ``release=True``.

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=200), "dimension": 8}
    >>> result = dp.histogram.run("both", runs=1, epochs=1, release=True, **small)
    >>> figure = dp.plot.histogram_distances(result, "distances.png")
    """
    distances = result.distances
    if distances.summed_after_release is None:
        raise InvalidInput("result", "an experiment without release", "must have been released")
    # Sum over the parameter arrays of their distances, as in the table of the report.
    kinds = (
        (distances.summed_from_start, "from initialization"),
        (distances.summed_after_release, "after release"),
    )
    with new_figure(path, size=(4.2, 3.2)) as (figure, axes):
        for shift, name in enumerate(result.mechanisms):
            rows = result.rows(name)
            for column, (values, _) in enumerate(kinds):
                distances, color = values[rows], COLORS[name]
                spread = np.linspace(-0.07, 0.07, len(rows)) if len(rows) > 1 else np.zeros(1)
                center = column + 0.3 * (shift - 0.5) * (len(result.mechanisms) > 1)
                axes.scatter(center + spread, distances, s=16, alpha=0.7, color=color, lw=0,
                             marker=MARKERS[name], label=None if column else name)  # fmt: skip
                axes.annotate(f"{distances.mean():.3g}", (center, distances.max()), (0, 6),
                              textcoords="offset points", ha="center", color=color,
                              fontsize=8)  # fmt: skip
        axes.set(yscale="log", xlim=(-0.5, 1.5), ylabel="distance, summed over arrays")
        axes.margins(y=0.12)
        axes.set_xticks([0, 1], [label for _, label in kinds])
        axes.legend(loc="center")
    return figure
