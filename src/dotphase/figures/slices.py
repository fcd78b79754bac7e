"""Slices through the phase diagram, a column for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import MARKERS, house_style, ink, page, save

SYMBOLS = {"omega": r"\omega", "sigma": r"\sigma", "ridge": r"\lambda"}
#: Three colours of Okabe and Ito for the three values of a parameter.
SHADES = ("#56B4E9", "#0072B2", "#CC79A7")
STYLES = {"semantic": "-", "positional": "--"}
OWN = {"semantic": "theta", "positional": "m"}

Slice = tuple[float, xr.Dataset, xr.Dataset]


def plot_slices(columns: Mapping[str, Sequence[Slice]], path: str | Path | None = None) -> Any:
    """Loss difference, overlaps and test error against alpha for several values of a parameter.

    Parameters
    ----------
    columns : mapping
        For each parameter its values, each with the theory of `dotphase.curve` and the runs of
        `dotphase.experiments.grid`.
    path : path, optional
        Where to write the figure.
    """
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(
            3, len(columns), figsize=(3.5 * len(columns), 8.2), layout="constrained", sharex=True,
            squeeze=False,
        )  # fmt: skip
        for column, (parameter, slices) in enumerate(columns.items()):
            for colour, (value, theory, runs) in zip(SHADES, slices, strict=True):
                label = rf"${SYMBOLS[parameter]} = {value:g}$"
                draw_slice(
                    axes[:, column], theory.sortby("alpha"), runs.isel(omega=0), colour, label
                )
            axes[0, column].axhline(0, color=ink(), lw=0.7)
            axes[0, column].legend()
            axes[2, column].set_xlabel(r"sample complexity $\alpha = n/d$")
            axes[1, column].set_ylim(bottom=0)
            axes[2, column].set_ylim(bottom=0)
            for row in (0, 2):
                axes[row, column].ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        axes[0, 0].set_ylabel(r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$")
        axes[1, 0].set_ylabel(r"overlaps $\theta/\sigma^2$ and $m/\sigma^2$")
        axes[2, 0].set_ylabel(r"test error $\epsilon_g$")
        for branch, style in STYLES.items():
            symbol = r"$\theta/\sigma^2$" if branch == "semantic" else r"$m/\sigma^2$"
            axes[1, 0].plot([], [], color=ink(), ls=style, marker=MARKERS[branch],
                            label=f"{branch} ({symbol})")  # fmt: skip
        axes[1, 0].legend()
        if path is not None:
            save(figure, path)
    return figure


def draw_slice(axes: Any, theory: xr.Dataset, runs: xr.Dataset, colour: str, label: str) -> None:
    """Loss difference, overlaps and test error of one model, into three axes."""
    alpha = theory["alpha"].values
    on_branch = theory["on_branch"].astype(bool)
    loss = theory["train_loss"].where(on_branch)
    axes[0].plot(
        alpha,
        loss.sel(branch="semantic") - loss.sel(branch="positional"),
        color=colour,
        label=label,
    )
    trained = runs["train_loss"]
    gap = trained.sel(start="semantic") - trained.sel(start="positional")
    _points(axes[0], gap, "D", colour)
    scale = float(np.atleast_1d(theory.attrs["sigma"])[0]) ** 2
    for branch, style in STYLES.items():
        for axis, name, size in ((axes[1], OWN[branch], scale), (axes[2], "test_error", 1.0)):
            values = (theory[name] / size).where(on_branch).sel(branch=branch)
            axis.plot(alpha, values, color=colour, ls=style)
            trusted = theory["trusted"].astype(bool).sel(branch=branch)
            axis.plot(
                alpha, values.where(~trusted), MARKERS[branch], ms=3.5, color=colour, mfc=page()
            )
            _points(axis, runs[name].sel(start=branch) / size, MARKERS[branch], colour)


def _points(axis: Any, values: xr.DataArray, marker: str, colour: str) -> None:
    count = values.sizes["seed"]
    error = values.std("seed", ddof=1) / np.sqrt(count) if count > 1 else None
    axis.errorbar(
        values["alpha"], values.mean("seed"), error, fmt=marker, ms=4.5, color=colour, lw=1,
        mec=ink(), mew=0.5,
    )  # fmt: skip
