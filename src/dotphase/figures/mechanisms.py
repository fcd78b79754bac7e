"""Mechanism of each run: theta against m."""

from pathlib import Path
from typing import Any

import numpy as np

from dotphase.figures.parts.lines import run_title
from dotphase.figures.parts.style import COLORS, GRAY, MARKERS, new_figure
from dotphase.training.result import Training


def mechanisms(training: Training, path: str | Path | None = None) -> Any:
    """Plot the overlaps of trained students, labelled by mechanism.

    Parameters
    ----------
    training : Training
        From `dotphase.train`.

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> figure = dp.plot.mechanisms(training, "mechanisms.png")
    """
    runs = [run for run in training.runs if not run.diverged]
    scale = float(training.model.rho[0])
    with new_figure(path, size=(3.8, 3.4)) as (figure, axis):
        for name in sorted({run.mechanism for run in runs}):
            group = [run for run in runs if run.mechanism == name]
            axis.scatter(
                [run.m / scale for run in group], [run.theta / scale for run in group],
                s=18, alpha=0.75, color=COLORS.get(name, GRAY), marker=MARKERS.get(name, "o"),
                label=f"{name} ({len(group)})",
            )  # fmt: skip
        chance = np.sqrt(max((run.q for run in runs), default=0.0) / scale / training.d)
        axis.axhline(chance, color="#999999", lw=0.8, ls=":", label="chance")
        axis.axvline(chance / scale, color="#999999", lw=0.8, ls=":")
        axis.set(xlabel=r"$|m|/\sigma^2$", ylabel=r"$|\theta|/\sigma^2$")
        axis.set_title(run_title(training, training.optimizer))
        axis.legend()
    return figure
