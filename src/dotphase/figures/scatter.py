"""Which mechanism each run found: theta against m."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dotphase.figures.style import COLOURS, MARKERS, house_style, save

if TYPE_CHECKING:
    from dotphase.training.result import Training


def plot_mechanisms(training: Training, path: str | Path | None = None) -> Any:
    """Scatter of the runs of `dotphase.train`, each labelled by the mechanism it found.

    Parameters
    ----------
    training : Training
        From `dotphase.train`.
    path : path, optional
        Where to write the figure (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    runs = [run for run in training.runs if not run.diverged]
    found = [run.mechanism for run in runs]
    scale = float(training.model.rho[0])
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(3.8, 3.4), layout="constrained")
        for name in sorted(set(found)):
            some = [run for run, label in zip(runs, found, strict=True) if label == name]
            axes.scatter(
                [run.m for run in some],
                [run.theta / scale for run in some],
                s=18,
                alpha=0.75,
                color=COLOURS.get(name, "#666666"),
                marker=MARKERS.get(name, "o"),
                label=f"{name} ({len(some)})",
            )
        chance = np.sqrt(max((run.q for run in runs), default=0.0) / scale / training.d)
        axes.axhline(chance, color="#999999", lw=0.8, ls=":", label="chance")
        axes.axvline(chance, color="#999999", lw=0.8, ls=":")
        axes.set_xlabel(r"$|m|$")
        axes.set_ylabel(r"$|\theta|/\sigma^2$")
        axes.set_title(
            rf"{training.start} start, {training.optimizer}, "
            rf"$d = {training.d}$, $\alpha = {training.alpha:g}$"
        )
        axes.legend()
        if path is not None:
            save(figure, path)
    return figure
