"""One pass over fresh sentences: theory, independent runs and trained students."""

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.dynamics import OVERLAPS, plot_training
from dotphase.figures.parts.lines import TEST_ERROR, overlap_scale
from dotphase.figures.parts.style import COLORS, ink_color, new_figure, page_color

#: Label of the horizontal axis.
ALPHA = r"sentences seen, $\alpha = n/d$"


def online(theory: Any, path: str | Path | None = None, training: xr.Dataset | None = None) -> Any:
    """Plot test error and overlaps against the number of sentences seen.

    Lines are the means of `dotphase.online` with a band of two standard errors, thin lines its
    single runs. Points are means and standard errors of trained students.

    Parameters
    ----------
    theory : OnePass or xarray.Dataset
        Result of `dotphase.online`, or its dataset.
    training : xarray.Dataset, optional
        `path` of the result of `dotphase.train` with ``fresh=True, record=True``.

    Examples
    --------
    >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
    >>> figure = dp.plot.online(path, "online.png")
    """
    data = theory if isinstance(theory, xr.Dataset) else theory.dataset()
    size = overlap_scale(data)
    with new_figure(path, 1, 2, size=(7.6, 3.4)) as (figure, axes):
        _plot(axes[0], data, training, "test_error", 1.0, ink_color(), "one pass")
        for name, (text, kind) in OVERLAPS.items():
            _plot(axes[1], data, training, name, size, COLORS[kind], text)
        if training is not None:
            label = f"training, $d = {training.attrs['d']}$"
            axes[0].plot([], [], "o", color=ink_color(), mfc=page_color(), label=label)
        axes[0].set(xlabel=ALPHA, ylabel=TEST_ERROR, yscale="log")
        axes[1].set(xlabel=ALPHA, ylabel="overlaps", ylim=(0, None))
        axes[0].legend()
        axes[1].legend()
    return figure


def _plot(
    axis: Any, data: xr.Dataset, training: xr.Dataset | None, name: str, size: float,
    color: str, label: str,
) -> None:  # fmt: skip
    """Plot the mean with its band, the single runs, and trained students."""
    alpha, values = data["alpha"], data[name].values / size
    axis.plot(alpha, values, color=color, label=label)
    error = 2 * data[f"{name}_stderr"].values / size
    axis.fill_between(alpha, values - error, values + error, color=color, alpha=0.2, lw=0)
    if data.sizes["repetition"] > 1:
        runs = data[f"{name}_samples"].values.T / size
        axis.plot(alpha, runs, color=color, lw=0.5, alpha=0.35)
    if training is not None:
        plot_training(axis, training, name, size, color, along="alpha")
