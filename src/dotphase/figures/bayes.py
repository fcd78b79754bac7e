"""Test errors of trained attention beside the best that the data allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import COLOURS, MARKERS, house_style, page, save


def plot_bayes(curve: xr.Dataset, bayes: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw the test errors of the branches, of the linear layer and of the Bayes-optimal learner.

    Parameters
    ----------
    curve : xarray.Dataset
        From `dotphase.curve`. Points where the theory is not to be trusted are hollow.
    bayes : xarray.Dataset
        From `dotphase.bayes_curve`, of the same teacher.
    path : path, optional
        Where to write the figure (.png, .svg or .pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    curve, bayes = curve.sortby("alpha"), bayes.sortby("alpha")
    with house_style() as pyplot:
        figure, axis = pyplot.subplots(figsize=(5.2, 3.6), layout="constrained")
        axis.axhline(
            float(curve["linear_test_error"]),
            color=COLOURS["linear"],
            lw=1.3,
            ls="-.",
            label="linear positional layer",
        )
        doubtful = False
        for name in curve["branch"].values:
            branch = curve.sel(branch=name)
            style = {"color": COLOURS[str(name)], "marker": MARKERS[str(name)]}
            shown = np.where(branch["on_branch"], branch["test_error"], np.nan)
            axis.plot(curve["alpha"], shown, label=f"attention, {name} minimum", **style)
            hollow = np.where(branch["trusted"], np.nan, shown)
            doubtful |= bool(np.any(np.isfinite(hollow)))
            axis.plot(curve["alpha"], hollow, ls="none", mfc=page(), **style)
        axis.plot(
            bayes["alpha"],
            bayes["test_error"],
            color=COLOURS["bayes"],
            lw=2.2,
            label="Bayes-optimal",
        )
        if doubtful:
            axis.plot([], [], "o", color="#666666", mfc=page(), label="theory not trusted")
        top = axis.get_ylim()[1]
        for part, word in (("weak_recovery_alpha", "weak"), ("exact_recovery_alpha", "exact")):
            where = float(bayes[part])
            axis.axvline(where, color=COLOURS["bayes"], lw=0.9, ls=":")
            axis.annotate(
                f"{word}\nrecovery",
                (where, top),
                xytext=(3, -2),
                textcoords="offset points",
                va="top",
                fontsize=7.5,
                color="#555555",
            )
        axis.set_ylim(0, top)
        axis.set_xlim(left=0)
        axis.set_xlabel(r"sample complexity $\alpha = n/d$")
        axis.set_ylabel(r"test error $\epsilon_g$")
        axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        axis.legend(loc="best")
        if path is not None:
            save(figure, path)
    return figure
