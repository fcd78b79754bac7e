"""The solver on the closed form of ridge regression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import COLOURS, house_style, page, save
from dotphase.model.glm import ridge_regression

#: Colours of the ridges, in their order.
_ORDER = ("semantic", "positional", "mixed", "bayes", "linear")


def plot_limits(ridge: xr.Dataset, path: str | Path | None = None) -> Any:
    """V and the test error against alpha: lines are closed forms, points the solver's.

    Parameters
    ----------
    ridge : xarray.Dataset
        Of a study of the engine ``regression`` over ridge and alpha.
    path : path, optional
        Where to write the figure.
    """
    alphas = np.geomspace(float(ridge["alpha"].min()), float(ridge["alpha"].max()), 200)
    panels = (("V", "$V$"), ("test_error", r"test error $\epsilon_g$"))
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(1, 2, figsize=(7.6, 3.3), layout="constrained")
        for axis, (name, label) in zip(axes, panels, strict=True):
            for kind, strength in zip(_ORDER, ridge["ridge"].values, strict=False):
                exact = [ridge_regression(float(alpha), float(strength))[name] for alpha in alphas]
                colour = COLOURS[kind]
                axis.plot(alphas, exact, color=colour, label=rf"$\lambda$ = {strength:g}")
                some = ridge.sel(ridge=strength)
                axis.plot(some["alpha"], some[name], "o", ls="none", color=colour, mfc=page())
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel(r"$\alpha = n/d$")
            axis.set_ylabel(label)
        axes[0].plot([], [], color="#888888", label="closed form")
        axes[0].plot([], [], "o", ls="none", color="#888888", mfc=page(), label="solver")
        axes[0].legend()
        if path is not None:
            save(figure, path)
        pyplot.close(figure)
    return figure
