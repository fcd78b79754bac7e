"""Test errors of attention and of the Bayes-optimal learner."""

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts import lines
from dotphase.figures.parts.style import COLORS, MARKERS, ink_color, new_figure


def bayes(curve: xr.Dataset, best: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot the test errors of the branches, of the linear layer and of the Bayes-optimal learner.

    Parameters
    ----------
    curve : xarray.Dataset
        From `dotphase.curve`. Markers are open where the theory is not trusted.
    best : xarray.Dataset
        From `dotphase.bayes.curve`, of the same teacher.

    Examples
    --------
    >>> model = dp.positional_semantic()
    >>> branches = dp.curve(model, [1.0, 2.0], log2_points=12)
    >>> best = dp.bayes.curve(model, [0.2, 0.4])
    >>> figure = dp.plot.bayes(branches, best, "bayes.png")
    """
    curve, best = curve.sortby("alpha"), best.sortby("alpha")
    with new_figure(path, size=(5.2, 3.6)) as (figure, axis):
        lines.plot_linear_baseline(axis, curve["linear_test_error"])
        any_untrusted = False
        for name in curve["branch"].values.tolist():
            branch = curve.sel(branch=name)
            marker = {"marker": MARKERS[name]}
            any_untrusted |= lines.plot_branch(
                axis, branch, branch["test_error"], hollow=marker, color=COLORS[name],
                label=f"attention, {name} minimum", **marker,
            )  # fmt: skip
        color = COLORS["bayes"]
        axis.plot(best["alpha"], best["test_error"], color=color, lw=2.2, label="Bayes-optimal")
        if any_untrusted:
            lines.add_hollow_entry(axis)
        if bool(lines.is_saddle(curve).any()):
            lines.add_saddle_entry(axis)
        top = axis.get_ylim()[1]
        for part, word in (("weak_recovery_alpha", "weak"), ("exact_recovery_alpha", "exact")):
            alpha = float(best[part])
            axis.axvline(alpha, color=color, lw=0.9, ls=":")
            axis.annotate(
                f"{word}\nrecovery", (alpha, top), xytext=(3, -2), textcoords="offset points",
                va="top", fontsize=7.5, color=ink_color(),
            )  # fmt: skip
        axis.set(xlim=(0, None), ylim=(0, top), xlabel=lines.ALPHA, ylabel=lines.TEST_ERROR)
        lines.use_scientific_ticks(axis)
        axis.legend(loc="best")
    return figure
