"""Losses, test errors and overlaps of the branches against alpha."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts import lines
from dotphase.figures.parts.lines import ALPHA, OVERLAP_LABELS, RS_MINIMA, TEST_ERROR, TRAIN_LOSS
from dotphase.figures.parts.style import COLORS, MARKERS, ink_color, new_figure


def curve(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot branches against alpha.

    The panels show the training loss with alpha_c, the test error with that of the linear layer,
    and the overlaps. A branch is plotted only where it exists, with open markers where the theory
    is not trusted, and dotted where it is a saddle.

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
    scale, gray = lines.overlap_scale(dataset), COLORS["uninformed"]
    with new_figure(path, 1, 3, size=(10.2, 3.3)) as (figure, axes):
        loss, error, overlap = axes
        any_untrusted = False
        for name in dataset["branch"].values.tolist():
            branch = dataset.sel(branch=name)
            marker = {"marker": MARKERS[name]}
            style: dict[str, Any] = {"hollow": marker, "color": COLORS[name], **marker}
            any_untrusted |= lines.plot_branch(
                loss, branch, branch["train_loss"], label=name, **style
            )
            lines.plot_branch(error, branch, branch["test_error"], **style)
            for (part, symbol), dashes in zip(OVERLAP_LABELS.items(), ("-", "--"), strict=True):
                values = (branch[part] / scale).where(branch[part] > lines.MIN_OVERLAP)
                if bool(values.where(branch["on_branch"]).notnull().any()):
                    label = f"{symbol}, {name}"
                    lines.plot_branch(overlap, branch, values, ls=dashes, label=label, **style)
        _plot_alpha_c(dataset, loss, error)
        lines.plot_linear_baseline(error, dataset["linear_test_error"])
        if any_untrusted:
            lines.add_hollow_entry(loss, color=gray)
        if bool(lines.is_saddle(dataset).any()):
            lines.add_saddle_entry(loss, color=gray)
        if not bool(dataset["on_branch"].any()):
            loss.text(0.5, 0.5, "no branch exists", ha="center", transform=loss.transAxes)
        labels = {TRAIN_LOSS: "lower right", TEST_ERROR: "lower left", "overlaps": "best"}
        for axis, (text, location) in zip(axes, labels.items(), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text)
            if axis.get_legend_handles_labels()[0]:
                axis.legend(loc=location)
        for axis in (loss, error):
            axis.set_ylim(bottom=0)
            lines.use_scientific_ticks(axis)
        is_descent = dataset.attrs.get("theory") == "dynamics"
        title = (
            f"ends of {lines.GRADIENT_DESCENT}" if is_descent else rf"{RS_MINIMA}, $d \to \infty$"
        )
        figure.suptitle(title, fontsize=10)
    return figure


def _plot_alpha_c(dataset: xr.Dataset, loss: Any, error: Any) -> None:
    """Plot alpha_c as a vertical line, if it is finite."""
    alpha_c, stderr = float(dataset["alpha_c"]), float(dataset["alpha_c_stderr"])
    if np.isfinite(alpha_c):
        label = rf"$\alpha_c = {alpha_c:.3f} \pm {stderr:.3f}$"
        for axis, text in ((loss, label), (error, None)):
            axis.axvline(alpha_c, color=ink_color(), lw=1.1, ls=":", label=text)
