"""Maps over alpha and omega: theory above, training below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import house_style, ink, quiet, save

LINES = (("alpha_c", "-", r"$\alpha_c$"), ("alpha_l", "--", r"$\alpha_l$"))


@dataclass(frozen=True)
class Panel:
    """One column of maps.

    Attributes
    ----------
    title : label of its colours
    colours : name of a colour map; one that diverges is centred on zero
    theory, trained : what is shown, over ``alpha`` and ``omega``
    centred : whether the colours are centred on zero
    """

    title: str
    colours: str
    theory: xr.DataArray
    trained: xr.DataArray
    centred: bool = True


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
        From `dotphase.experiments.grid`.
    lines : xarray.Dataset, optional
        ``alpha_c`` and ``alpha_l`` against omega; those of `theory` if not given.
    path : path, optional
        Where to write the figure.
    """
    loss = runs["train_loss"]
    difference = (loss.sel(start="semantic") - loss.sel(start="positional")).mean("seed")
    label = r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$  $[10^{-3}]$"
    panels = [
        Panel(label, "PuOr", 1e3 * theory["loss_difference"], 1e3 * difference),
        gain_panel(theory, runs),
    ]
    return plot_panels(panels, theory, runs, theory if lines is None else lines, path)


def gain_panel(theory: xr.Dataset, runs: xr.Dataset) -> Panel:
    """Gain in test error over the linear layer, of the minimum with the lowest training loss."""
    loss, error = runs["train_loss"], runs["test_error"]
    lower = loss.sel(start="semantic") < loss.sel(start="positional")
    best = xr.where(lower, error.sel(start="semantic"), error.sel(start="positional"))
    trained = (runs["linear_test_error"] - best).mean("seed")
    label = r"$\epsilon_{\rm lin} - \epsilon_g$, lowest minimum  $[10^{-3}]$"
    return Panel(label, "RdBu", 1e3 * theory["test_gain"], 1e3 * trained)


def plot_panels(
    panels: Sequence[Panel],
    theory: xr.Dataset,
    runs: xr.Dataset,
    lines: xr.Dataset,
    path: str | Path | None = None,
) -> Any:
    """Columns of maps with the critical lines; hatched where the theory is not trusted."""
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(
            2,
            len(panels),
            figsize=(4.7 * len(panels), 6.6),
            layout="constrained",
            sharex=True,
            sharey=True,
        )
        for column, panel in zip(axes.T, panels, strict=True):
            limit = max(float(np.abs(field).max()) for field in (panel.theory, panel.trained))
            for axis, field in zip(column, (panel.theory, panel.trained), strict=True):
                axis.set_facecolor(quiet())
                mesh = axis.pcolormesh(
                    field["alpha"],
                    field["omega"],
                    field.transpose("omega", "alpha"),
                    cmap=panel.colours,
                    vmin=-limit if panel.centred else 0.0,
                    vmax=limit,
                    shading="nearest",
                    rasterized=True,
                )
                axis.grid(False)
                for name, style, label in LINES:
                    if bool(np.isfinite(lines[name]).any()):
                        axis.plot(
                            lines[name],
                            lines["omega"],
                            ls=style,
                            color="#222222",
                            lw=1.8,
                            label=label,
                        )
            _hatch(column[0], theory)
            figure.colorbar(mesh, ax=column, label=panel.title)
            column[1].set_xlabel(r"sample complexity $\alpha = n/d$")
        axes[0, 0].set_ylabel(r"$\omega$   (theory)")
        axes[1, 0].set_ylabel(rf"$\omega$   (training, $d = {runs.attrs['d']}$)")
        if bool(panels[0].theory.isnull().any()):
            axes[0, 0].plot(
                [],
                [],
                ls="none",
                marker="s",
                mfc=quiet(),
                mec=ink(),
                mew=0.4,
                label="one branch missing",
            )
        # The lines are dark on every page, like the maps below them are bright.
        axes[0, 0].legend(loc="upper left", facecolor="#FFFFFF", labelcolor="#222222")
        axes[0, 0].set_xlim(float(theory["alpha"].min()), float(theory["alpha"].max()))
        axes[0, 0].set_ylim(float(theory["omega"].min()), float(theory["omega"].max()))
        if path is not None:
            save(figure, path)
    return figure


def _hatch(axis: Any, theory: xr.Dataset) -> None:
    doubtful = ~theory["winner_trusted"].astype(bool).transpose("omega", "alpha").values
    if doubtful.any():
        axis.contourf(
            theory["alpha"],
            theory["omega"],
            doubtful.astype(float),
            levels=[0.5, 1.5],
            colors="none",
            hatches=["////"],
        )
