"""Learning curves of the counting transformers."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from dotphase.figures.parts.style import COLORS, ink_color, new_figure
from dotphase.histogram import Experiment


def histogram_curves(result: Experiment, path: str | Path | None = None) -> Any:
    """Plot the training loss and the share of wrongly counted held-out tokens by epoch.

    Parameters
    ----------
    result : Experiment
        From `dotphase.histogram.run`.

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=200), "dimension": 8}
    >>> result = dp.histogram.run("both", runs=1, epochs=1, **small)
    >>> figure = dp.plot.histogram_curves(result, "curves.png")
    """
    trained = result.trained
    epoch = np.arange(1, trained.accuracy.shape[1] + 1)
    tokens = 0.3 * result.task.samples * result.task.length
    panels = (
        (trained.train_loss, "training loss"),
        # The axis is logarithmic: a run without errors is plotted at half an error.
        (np.maximum(1 - trained.accuracy, 0.5 / tokens), "held-out tokens counted wrong"),
    )
    with new_figure(path, 1, 2, size=(6.8, 2.9)) as (figure, both):
        for axes, (values, label) in zip(both, panels, strict=True):
            for name in result.mechanisms:
                rows, color = result.rows(name), COLORS[name]
                width, alpha = (0.6, 0.35) if len(rows) > 1 else (1.4, 1.0)
                for row in rows:
                    axes.plot(epoch, values[row], color=color, lw=width, alpha=alpha)
                # The median, since a single bad run would determine the mean.
                label_of = f"{name}, median and {len(rows)} runs" if len(rows) > 1 else name
                axes.plot(epoch, np.median(values[rows], axis=0), color=color, label=label_of)
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set(xlabel="epoch", ylabel=label)
        target = result.settings.target
        if target:
            both[1].axhline(1 - target, color=ink_color(), lw=0.8, ls=":", label="target")
        both[1].legend()
    return figure
