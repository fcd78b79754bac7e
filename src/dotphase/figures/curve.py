"""Losses, test errors and overlaps of the branches against alpha."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import COLOURS, MARKERS, house_style, ink, page, save


def plot_curve(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a dataset of `dotphase.curve`.

    Training loss with the crossing marked, test error with the linear baseline, and the
    overlaps. A branch is drawn only where it exists; points at which the theory is not to
    be trusted are hollow.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.curve`.
    path : path, optional
        Where to write the figure (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    dataset = dataset.sortby("alpha")
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(1, 3, figsize=(10.2, 3.3), layout="constrained")
        loss, error, overlap = axes
        for name in dataset["branch"].values:
            branch = dataset.sel(branch=name)
            _line(loss, branch, "train_loss", name, label=str(name))
            _line(error, branch, "test_error", name)
            for part, style in (("theta", "-"), ("m", "--")):
                shown = branch["on_branch"] & (branch[part] > 1e-6)
                if bool(shown.any()):
                    scale = float(np.atleast_1d(dataset.attrs["sigma"])[0]) ** 2
                    size = branch[part] / scale if part == "theta" else branch[part]
                    symbol = r"$\theta/\sigma^2$" if part == "theta" else r"$|m|$"
                    label = f"{symbol}, {name}"
                    _line(overlap, branch.assign({part: size}), part, name, label, style, shown)
        crossing = float(dataset["crossing"])
        if np.isfinite(crossing):
            label = rf"$\alpha_c = {crossing:.3f} \pm {float(dataset['crossing_stderr']):.3f}$"
            loss.axvline(crossing, color=ink(), lw=1.1, ls=":", label=label)
            error.axvline(crossing, color=ink(), lw=1.1, ls=":")
        linear = float(dataset["linear_test_error"])
        error.axhline(
            linear, color=COLOURS["linear"], lw=1.3, ls="-.", label="linear positional layer"
        )
        if not bool(dataset["trusted"].where(dataset["on_branch"], other=True).all()):
            loss.plot(
                [], [], "o", color=COLOURS["uninformed"], mfc=page(), label="theory not trusted"
            )
        if not bool(dataset["on_branch"].any()):
            loss.text(0.5, 0.5, "nothing was found", ha="center", transform=loss.transAxes)
        loss.set_ylabel(r"training loss $\epsilon_t$")
        error.set_ylabel(r"test error $\epsilon_g$")
        overlap.set_ylabel("overlaps")
        for axis, place in zip(axes, ("lower right", "lower left", "best"), strict=True):
            axis.set_xlabel(r"sample complexity $\alpha = n/d$")
            if axis.get_legend_handles_labels()[0]:
                axis.legend(loc=place)
        for axis in (loss, error):
            axis.set_ylim(bottom=0)
            axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        if path is not None:
            save(figure, path)
    return figure


def _line(
    axis: Any,
    branch: xr.Dataset,
    part: str,
    name: str,
    label: str | None = None,
    style: str = "-",
    shown: xr.DataArray | None = None,
) -> None:
    """One branch: a line through all its points, hollow markers where it is not trusted."""
    shown = branch["on_branch"] if shown is None else shown
    alpha = branch["alpha"].values
    values = np.where(shown, branch[part], np.nan)
    colour, marker = COLOURS[str(name)], MARKERS[str(name)]
    axis.plot(alpha, values, ls=style, color=colour, marker=marker, label=label)
    doubtful = np.where(shown & ~branch["trusted"], branch[part], np.nan)
    axis.plot(alpha, doubtful, ls="none", color=colour, marker=marker, mfc=page())
