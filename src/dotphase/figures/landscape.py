"""Effective loss landscape in the plane of the two overlaps."""

from pathlib import Path
from typing import Any

import numpy as np

from dotphase.figures.parts.lines import TRAIN_LOSS
from dotphase.figures.parts.style import ink_color, new_figure, page_color
from dotphase.theory.landscape import Landscape

#: Number of contour levels.
LEVELS = 16


def landscape(surface: Landscape, path: str | Path | None = None) -> Any:
    """Plot contours of the smallest training loss at prescribed m and theta, with its minima.

    Hatched where jumps carry too much of the response for replica symmetry to be trusted.

    Parameters
    ----------
    surface : Landscape
        From `dotphase.analysis.landscape`.

    Examples
    --------
    >>> surface = dp.analysis.landscape(dp.positional_semantic(), 2.0, [0.0, 0.2], [0.0, 0.1])
    >>> figure = dp.plot.landscape(surface, "landscape.png")
    """
    loss = np.ma.masked_invalid(surface.loss)
    with new_figure(path, size=(4.6, 3.8)) as (figure, axis):
        axis.grid(False)
        shades = axis.contourf(surface.m, surface.theta, loss, LEVELS, cmap="viridis")
        axis.contour(surface.m, surface.theta, loss, LEVELS, colors=[page_color()], linewidths=0.4)
        if not surface.trusted.all():
            untrusted = np.where(surface.trusted, 0.0, 1.0)
            axis.contourf(
                surface.m, surface.theta, untrusted, [0.5, 1.5], colors="none", hatches=["////"]
            )
            axis.plot([], [], "s", mfc="none", mec=ink_color(), label="hatched: theory not trusted")
        for index, (m, theta, _) in enumerate(surface.minima):
            label = "minima" if index == 0 else None
            axis.plot(
                m, theta, "o", color=page_color(), mec=ink_color(), ms=8, label=label, clip_on=False
            )
        bar = figure.colorbar(shades, ax=axis, label=TRAIN_LOSS)
        bar.formatter.set_powerlimits((0, 0))
        axis.set(xlabel="$m$", ylabel=r"$\theta$", title=rf"$\alpha = {surface.alpha:g}$")
        if axis.get_legend_handles_labels()[0]:
            axis.legend()
    return figure
