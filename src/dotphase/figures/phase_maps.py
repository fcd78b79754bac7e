"""Phase diagrams of theory and of training, one above the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import house_style, ink, quiet, save

PANELS = (
    (r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$", "PuOr"),
    (r"$\epsilon_{\rm lin} - \epsilon_g$, lowest minimum", "RdBu"),
)


def plot_phase_maps(
    theory: xr.Dataset,
    runs: xr.Dataset,
    lines: xr.Dataset | None = None,
    path: str | Path | None = None,
) -> Any:
    """Loss difference and gain over the linear layer, in theory (above) and trained (below).

    Parameters
    ----------
    theory : xarray.Dataset
        From `dotphase.diagram`.
    runs : xarray.Dataset
        From `dotphase.study.experiment`.
    lines : xarray.Dataset, optional
        ``alpha_c`` and ``alpha_l`` against omega; those of `theory` if not given.
    path : path, optional
        Where to write the figure.
    """
    lines = theory if lines is None else lines
    names = ("theory", f"training, $d = {runs.attrs['d']}$")
    rows = ((theory["loss_difference"], theory["test_gain"]), _trained(runs))
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(
            2, 2, figsize=(9.4, 6.6), layout="constrained", sharex=True, sharey=True
        )
        for column, (title, colours) in enumerate(PANELS):
            limit = 1e3 * max(float(np.abs(row[column]).max()) for row in rows)
            for line, row in enumerate(rows):
                axis, field = axes[line, column], row[column]
                axis.set_facecolor(quiet())
                mesh = axis.pcolormesh(
                    field["alpha"], field["omega"], 1e3 * field.transpose("omega", "alpha"),
                    cmap=colours, vmin=-limit, vmax=limit, shading="nearest", rasterized=True,
                )  # fmt: skip
                axis.grid(False)
                for name, style, label in (
                    ("alpha_c", "-", r"$\alpha_c$"),
                    ("alpha_l", "--", r"$\alpha_l$"),
                ):
                    axis.plot(
                        lines[name], lines["omega"], ls=style, color="#222222", lw=1.8, label=label
                    )
            doubtful = ~theory["winner_trusted"].astype(bool).transpose("omega", "alpha").values
            if doubtful.any():
                axes[0, column].contourf(
                    theory["alpha"], theory["omega"], doubtful.astype(float), levels=[0.5, 1.5],
                    colors="none", hatches=["////"],
                )  # fmt: skip
            figure.colorbar(mesh, ax=axes[:, column], label=title + r"  $[10^{-3}]$")
            axes[1, column].set_xlabel(r"sample complexity $\alpha = n/d$")
        for line, name in enumerate(names):
            axes[line, 0].set_ylabel(rf"$\omega$   ({name})")
        axes[0, 0].plot(
            [], [], ls="none", marker="s", mfc=quiet(), mec=ink(), mew=0.4,
            label="one branch missing",
        )  # fmt: skip
        axes[0, 0].legend(loc="upper left")
        axes[0, 0].set_xlim(float(theory["alpha"].min()), float(theory["alpha"].max()))
        axes[0, 0].set_ylim(float(theory["omega"].min()), float(theory["omega"].max()))
        if path is not None:
            save(figure, path)
        pyplot.close(figure)
    return figure


def _trained(runs: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Loss difference, and gain in test error of the run with the lower loss."""
    loss, error = runs["train_loss"], runs["test_error"]
    semantic, positional = (loss.sel(start=name) for name in ("semantic", "positional"))
    best = xr.where(
        semantic < positional, error.sel(start="semantic"), error.sel(start="positional")
    )
    difference = (semantic - positional).mean("seed")
    return difference, (runs["linear_test_error"] - best).mean("seed")
