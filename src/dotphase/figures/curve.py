"""Losses, test errors and overlaps of the branches against alpha."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import (
    ALPHA,
    GRADIENT_DESCENT,
    OVERLAP_LABELS,
    RS_MINIMA,
    TEST_ERROR,
    TRAIN_LOSS,
    add_hollow_entry,
    add_saddle_entry,
    is_saddle,
    overlap_scale,
    plot_branch,
    plot_linear_baseline,
    use_scientific_ticks,
)
from dotphase.figures.parts.style import COLORS, MARKERS, ink_color, new_figure


def curve(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a dataset of `dotphase.curve`.

    Training loss with alpha_c marked, test error with the linear baseline, and the
    overlaps. A branch is drawn only where it exists; points at which the theory is not to
    be trusted are hollow, those at which it is a saddle dotted.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.curve`.

    Examples
    --------
    >>> branches = dp.curve(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> figure = dp.plot.curve(branches, "curve.png")
    """
    dataset = dataset.sortby("alpha")
    scale = overlap_scale(dataset)
    with new_figure(path, 1, 3, size=(10.2, 3.3)) as (figure, axes):
        loss, error, overlap = axes
        doubtful = False
        for name in dataset["branch"].values.tolist():
            branch = dataset.sel(branch=name)
            mark = {"marker": MARKERS[name]}
            style = mark | {"color": COLORS[name]}
            doubtful |= plot_branch(
                loss, branch, branch["train_loss"], hollow=mark, label=name, **style
            )
            plot_branch(error, branch, branch["test_error"], hollow=mark, **style)
            for (part, symbol), dashes in zip(OVERLAP_LABELS.items(), ("-", "--"), strict=True):
                shown = (branch[part] / scale).where(branch[part] > 1e-6)
                if bool(shown.where(branch["on_branch"]).notnull().any()):
                    plot_branch(
                        overlap, branch, shown, hollow=mark, ls=dashes,
                        label=f"{symbol}, {name}", **style,
                    )  # fmt: skip
        alpha_c = float(dataset["alpha_c"])
        if np.isfinite(alpha_c):
            label = rf"$\alpha_c = {alpha_c:.3f} \pm {float(dataset['alpha_c_stderr']):.3f}$"
            for axis, text in ((loss, label), (error, None)):
                axis.axvline(alpha_c, color=ink_color(), lw=1.1, ls=":", label=text)
        plot_linear_baseline(error, dataset["linear_test_error"])
        if doubtful:
            add_hollow_entry(loss, color=COLORS["uninformed"])
        if bool(is_saddle(dataset).any()):
            add_saddle_entry(loss, color=COLORS["uninformed"])
        if not bool(dataset["on_branch"].any()):
            loss.text(0.5, 0.5, "nothing was found", ha="center", transform=loss.transAxes)
        labels = {TRAIN_LOSS: "lower right", TEST_ERROR: "lower left", "overlaps": "best"}
        for axis, (text, place) in zip(axes, labels.items(), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text)
            if axis.get_legend_handles_labels()[0]:
                axis.legend(loc=place)
        for axis in (loss, error):
            axis.set_ylim(bottom=0)
            use_scientific_ticks(axis)
        ends = dataset.attrs.get("theory") == "dynamics"
        which = f"ends of {GRADIENT_DESCENT}" if ends else rf"{RS_MINIMA}, $d \to \infty$"
        figure.suptitle(which, fontsize=10)
    return figure
