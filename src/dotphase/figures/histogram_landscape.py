"""The loss between a semantic and a positional solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotphase.figures.parts.style import COLORS, ink_color, new_figure

if TYPE_CHECKING:
    from dotphase.histogram import LossBetween


def histogram_landscape(
    found: LossBetween,
    path: str | Path | None = None,
    *,
    names: tuple[str, str] = ("semantic", "positional"),
) -> Any:
    """Held-out loss and accuracy on the line between two networks, as they are and aligned.

    Parameters
    ----------
    found : LossBetween
        From `dotphase.histogram.loss_between`, or the `landscape` of an experiment.
    names : pair of str
        What to call the two ends.

    Examples
    --------
    >>> first, second = (dp.histogram.shipped(name) for name in ("semantic", "positional"))
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> found = dp.histogram.loss_between(first, second, split, 3)
    >>> figure = dp.plot.histogram_landscape(found, "landscape.png")
    """
    shown = (
        (found.loss, found.aligned_loss, "held-out loss", "log"),
        (found.accuracy, found.aligned_accuracy, "held-out accuracy", "linear"),
    )
    with new_figure(path, 1, 2, size=(6.8, 2.9)) as (figure, both):
        for axes, (plain, aligned, label, scale) in zip(both, shown, strict=True):
            axes.plot(found.place, plain, color=ink_color(), label="as trained")
            color = COLORS["mixed"]
            axes.plot(found.place, aligned, color=color, ls="--", label="symmetries aligned")
            for place, name in enumerate(names):
                color = COLORS.get(name, ink_color())
                axes.plot(place, plain[-place], "o", color=color, clip_on=False)
            axes.set(yscale=scale, xlim=(0, 1), ylabel=label)
            axes.set_xticks([0, 0.5, 1], [names[0], "half way", names[1]])
        both[0].legend()
    return figure
