"""The loss between a semantic and a positional solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotphase.figures.parts.style import COLOURS, drawing, ink

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
    with drawing(path, 1, 2, size=(6.8, 2.9)) as (figure, both):
        for axes, (plain, aligned, label, scale) in zip(both, shown, strict=True):
            axes.plot(found.place, plain, color=ink(), label="as trained")
            axes.plot(found.place, aligned, color=COLOURS["mixed"], ls="--",
                      label="symmetries aligned")  # fmt: skip
            for place, name, values in ((0.0, names[0], plain[0]), (1.0, names[1], plain[-1])):
                axes.plot(place, values, "o", color=COLOURS.get(name, ink()), clip_on=False)
            axes.set_yscale(scale)
            axes.set_xlim(0, 1)
            axes.set_xticks([0, 0.5, 1], [names[0], "half way", names[1]])
            axes.set_ylabel(label)
        both[0].legend()
    return figure
