"""The solver on the closed form of ridge regression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.analysis import ridge_regression
from dotphase.plot.style import COLORS, TEST_ERROR, new_figure, page_color

#: Colors of the ridges, in their order.
ORDER = ("semantic", "positional", "mixed", "bayes", "linear")


def plot_ridge_regression(ridge: xr.Dataset, path: str | Path | None = None) -> Any:
    """V and the test error against alpha: lines are closed forms, points the solver's.

    Parameters
    ----------
    ridge : xarray.Dataset
        Of a study of the task ``regression`` over ridge and alpha.
    """
    alphas = np.geomspace(float(ridge["alpha"].min()), float(ridge["alpha"].max()), 200)
    with new_figure(path, 1, 2, size=(7.6, 3.3)) as (figure, axes):
        for axis, name, label in zip(axes, ("V", "test_error"), ("$V$", TEST_ERROR), strict=True):
            for kind, strength in zip(ORDER, ridge["ridge"].values, strict=False):
                exact = [ridge_regression(float(alpha), float(strength))[name] for alpha in alphas]
                color = COLORS[kind]
                axis.plot(alphas, exact, color=color, label=rf"$\lambda$ = {strength:g}")
                row = ridge.sel(ridge=strength)
                axis.plot(row["alpha"], row[name], "o", ls="none", color=color, mfc=page_color())
            axis.set(xscale="log", yscale="log", xlabel=r"$\alpha = n/d$", ylabel=label)
        axes[0].plot([], [], color="#888888", label="closed form")
        axes[0].plot([], [], "o", ls="none", color="#888888", mfc=page_color(), label="solver")
        axes[0].legend()
    return figure
