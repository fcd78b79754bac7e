"""Gradient descent step by step: theory with its error, and trained students."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import (
    GRADIENT_DESCENT,
    TEST_ERROR,
    TRAIN_LOSS,
    overlap_scale,
    plot_seed_means,
    use_scientific_ticks,
)
from dotphase.figures.parts.style import COLORS, ink_color, new_figure, page_color

#: Label of each overlap, and the branch that gives its color.
OVERLAPS = {
    "theta": (r"$\theta/\sigma^2$", "semantic"),
    "m": (r"$m/\sigma^2$", "positional"),
    "q": (r"$q/\sigma^2$", "mixed"),
}
#: Number of steps at which trained students are plotted.
N_MARKED = 14


def dynamics(
    theory: xr.Dataset, path: str | Path | None = None, training: xr.Dataset | None = None
) -> Any:
    """Plot loss, test error and overlaps against the step.

    Lines are theory, dotted where it is not trusted, with a band of two standard errors. Points are
    means and standard errors of trained students over data sets.

    Parameters
    ----------
    theory : xarray.Dataset
        `dataset()` of the result of `dotphase.dynamics`.
    training : xarray.Dataset, optional
        `path` of the result of `dotphase.train` with ``record=True``.

    Examples
    --------
    >>> small = {"log2_ensemble": 8, "repetitions": 2, "rtol": None}
    >>> model = dp.positional_semantic()
    >>> along = dp.dynamics(model, alpha=2.0, steps=5, lr=8.0, **small)
    >>> rule = {"optimizer": "gd", "lr": 8.0, "steps": 5, "record": True}
    >>> runs = dp.train(model, alpha=2.0, d=40, seeds=2, start="semantic", **rule)
    >>> figure = dp.plot.dynamics(along.dataset(), "dynamics.png", runs.path)
    """
    size = overlap_scale(theory)
    scales = {"theta": size, "m": size, "q": size}
    with new_figure(path, 1, 3, size=(10.4, 3.4)) as (figure, axes):
        panels = [
            (axes[0], "train_loss", ink_color(), GRADIENT_DESCENT),
            (axes[1], "test_error", ink_color(), None),
        ]
        panels += [(axes[2], name, COLORS[kind], text) for name, (text, kind) in OVERLAPS.items()]
        for axis, name, color, label in panels:
            _plot_theory(axis, theory, name, scales.get(name, 1.0), color, label)
            if training is not None:
                plot_training(axis, training, name, scales.get(name, 1.0), color)
        if training is not None:
            d = training.attrs["d"]
            axes[0].plot(
                [], [], "o", color=ink_color(), mfc=page_color(), label=f"training, $d = {d}$"
            )
        for axis, text in zip(axes, (TRAIN_LOSS, TEST_ERROR, "overlaps"), strict=True):
            axis.set(xlabel="step", ylabel=text)
        axes[2].set_ylim(bottom=0)
        axes[0].legend()
        axes[2].legend()
        use_scientific_ticks(axes[0], axes[1])
    return figure


def _plot_theory(
    axis: Any, theory: xr.Dataset, name: str, size: float, color: str, label: str | None
) -> None:
    """Plot a line with its band, dotted where it is not trusted."""
    steps, trusted = theory["step"].values, theory["trusted"].values.astype(bool)
    values, error = theory[name].values / size, theory[f"{name}_stderr"].values / size
    axis.plot(steps, np.where(trusted, values, np.nan), color=color, label=label)
    axis.plot(steps, np.where(trusted, np.nan, values), color=color, ls=":")
    band = values - 2 * error, values + 2 * error
    axis.fill_between(steps, *band, color=color, alpha=0.2, lw=0)


def plot_training(
    axis: Any, training: xr.Dataset, name: str, size: float, color: str, along: str = "step"
) -> None:
    """Plot means over data sets at a few steps, most of them early, where changes are fast."""
    last = training.sizes["step"] - 1
    marked = np.unique(np.round(last * np.linspace(0, 1, N_MARKED) ** 2).astype(int))
    rows = training[name].isel(step=marked) / size
    plot_seed_means(axis, rows, rows[along], fmt="o", color=color, mfc=page_color(), ms=4.5)
