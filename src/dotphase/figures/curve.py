"""Losses, test errors and overlaps of the branches against alpha."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import (
    ALPHA,
    DESCENT,
    MINIMA,
    SCALED,
    TEST_ERROR,
    TRAIN_LOSS,
    branch_line,
    hollow_entry,
    is_saddle,
    linear_level,
    overlap_scale,
    saddle_entry,
    scientific,
)
from dotphase.figures.parts.style import COLOURS, MARKERS, drawing, ink


def curve(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a dataset of `dotphase.curve`.

    Training loss with the crossing marked, test error with the linear baseline, and the
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
    with drawing(path, 1, 3, size=(10.2, 3.3)) as (figure, axes):
        loss, error, overlap = axes
        doubtful = False
        for name in dataset["branch"].values.tolist():
            branch = dataset.sel(branch=name)
            mark = {"marker": MARKERS[name]}
            style = mark | {"color": COLOURS[name]}
            doubtful |= branch_line(
                loss, branch, branch["train_loss"], hollow=mark, label=name, **style
            )
            branch_line(error, branch, branch["test_error"], hollow=mark, **style)
            for (part, symbol), dashes in zip(SCALED.items(), ("-", "--"), strict=True):
                shown = (branch[part] / scale).where(branch[part] > 1e-6)
                if bool(shown.where(branch["on_branch"]).notnull().any()):
                    branch_line(
                        overlap, branch, shown, hollow=mark, ls=dashes,
                        label=f"{symbol}, {name}", **style,
                    )  # fmt: skip
        crossing = float(dataset["crossing"])
        if np.isfinite(crossing):
            label = rf"$\alpha_c = {crossing:.3f} \pm {float(dataset['crossing_stderr']):.3f}$"
            for axis, text in ((loss, label), (error, None)):
                axis.axvline(crossing, color=ink(), lw=1.1, ls=":", label=text)
        linear_level(error, dataset["linear_test_error"])
        if doubtful:
            hollow_entry(loss, colour=COLOURS["uninformed"])
        if bool(is_saddle(dataset).any()):
            saddle_entry(loss, colour=COLOURS["uninformed"])
        if not bool(dataset["on_branch"].any()):
            loss.text(0.5, 0.5, "nothing was found", ha="center", transform=loss.transAxes)
        labels = {TRAIN_LOSS: "lower right", TEST_ERROR: "lower left", "overlaps": "best"}
        for axis, (text, place) in zip(axes, labels.items(), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text)
            if axis.get_legend_handles_labels()[0]:
                axis.legend(loc=place)
        for axis in (loss, error):
            axis.set_ylim(bottom=0)
            scientific(axis)
        ends = dataset.attrs.get("engine") == "dynamics"
        which = f"ends of {DESCENT}" if ends else rf"{MINIMA}, $d \to \infty$"
        figure.suptitle(which, fontsize=10)
    return figure
