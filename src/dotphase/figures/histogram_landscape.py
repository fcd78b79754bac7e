"""Loss between a semantic and a positional solution."""

from pathlib import Path
from typing import Any

from dotphase.figures.parts.style import COLORS, ink_color, new_figure
from dotphase.histogram import LossBetween


def histogram_landscape(
    result: LossBetween,
    path: str | Path | None = None,
    *,
    names: tuple[str, str] = ("semantic", "positional"),
) -> Any:
    """Plot held-out loss and accuracy on the line between two networks.

    A second line connects the networks after their symmetries are aligned.

    Parameters
    ----------
    result : LossBetween
        From `dotphase.histogram.loss_between`, or the `landscape` of an experiment.
    names : pair of str
        Labels of the two ends.

    Examples
    --------
    >>> first, second = (dp.histogram.shipped(name) for name in ("semantic", "positional"))
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> result = dp.histogram.loss_between(first, second, split, points=3)
    >>> figure = dp.plot.histogram_landscape(result, "landscape.png")
    """
    panels = (
        (result.loss, result.aligned_loss, "held-out loss", "log"),
        (result.accuracy, result.aligned_accuracy, "held-out accuracy", "linear"),
    )
    with new_figure(path, 1, 2, size=(6.8, 2.9)) as (figure, both):
        for axes, (direct, aligned, label, scale) in zip(both, panels, strict=True):
            axes.plot(result.position, direct, color=ink_color(), label="as trained")
            color = COLORS["mixed"]
            axes.plot(result.position, aligned, color=color, ls="--", label="symmetries aligned")
            for end, name in enumerate(names):
                color = COLORS.get(name, ink_color())
                axes.plot(end, direct[-end], "o", color=color, clip_on=False)
            axes.set(yscale=scale, xlim=(0, 1), ylabel=label)
            axes.set_xticks([0, 0.5, 1], [names[0], "halfway", names[1]])
        both[0].legend()
    return figure
