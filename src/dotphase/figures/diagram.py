"""Phase diagrams as maps with the critical lines on top."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import house_style, ink, quiet, save

SYMBOLS = {"omega": r"\omega", "sigma": r"\sigma", "ridge": r"\lambda"}


def plot_diagram(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a dataset of `dotphase.diagram`.

    Left the difference of the training losses, right the gain in test error over the linear
    layer, both in units of 1e-3; alpha_c and alpha_l as lines; hatched where the theory of the
    winning branch is not to be trusted.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.diagram`.
    path : path, optional
        Where to write the figure (.png, .svg or .pdf).
    """
    parameter = str(dataset.attrs["parameter"])
    alpha, values = dataset["alpha"].values, dataset[parameter].values
    panels = [
        ("loss_difference", r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$", "PuOr"),
        ("test_gain", r"$\epsilon_{\rm lin} - \epsilon_g$ of the lowest minimum", "RdBu"),
    ]
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(
            1, 2, figsize=(9.6, 3.9), layout="constrained", sharex=True, sharey=True
        )
        for axis, (name, title, colours) in zip(axes, panels, strict=True):
            field = 1e3 * dataset[name].transpose(parameter, "alpha").values
            limit = float(np.nanmax(np.abs(field))) if np.any(np.isfinite(field)) else 1.0
            axis.set_facecolor(quiet())
            mesh = axis.pcolormesh(
                alpha, values, field, cmap=colours, vmin=-limit, vmax=limit, shading="nearest",
                rasterized=True,
            )  # fmt: skip
            figure.colorbar(mesh, ax=axis, label=title + r"  $[10^{-3}]$")
            doubtful = ~dataset["winner_trusted"].transpose(parameter, "alpha").values
            if values.size > 1 and doubtful.any():
                axis.contourf(
                    alpha, values, doubtful.astype(float), levels=[0.5, 1.5], colors="none",
                    hatches=["////"],
                )  # fmt: skip
            for line, style, label in (
                ("alpha_c", "-", r"$\alpha_c$"),
                ("alpha_l", "--", r"$\alpha_l$"),
            ):
                axis.plot(dataset[line], values, ls=style, color=ink(), lw=1.8, label=label)
            axis.set_xlabel(r"sample complexity $\alpha = n/d$")
            axis.grid(False)
        axes[0].plot(
            [], [], ls="none", marker="s", mfc=quiet(), mec="none", label="one branch missing"
        )
        axes[0].set_ylabel(f"${SYMBOLS.get(parameter, parameter)}$")
        axes[0].legend(loc="upper left")
        if path is not None:
            save(figure, path)
    return figure
