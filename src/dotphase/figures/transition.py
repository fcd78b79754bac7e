"""The transition: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import COLOURS, MARKERS, house_style, ink, page, save

ALPHA = r"sample complexity $\alpha = n/d$"
BRANCHES = ("semantic", "positional")
#: The overlap that each branch has.
OWN = {"semantic": ("theta", r"$\theta/\sigma^2$"), "positional": ("m", r"$m/\sigma^2$")}


def plot_transition(
    theory: xr.Dataset,
    critical: xr.Dataset,
    runs: xr.Dataset | None = None,
    path: str | Path | None = None,
) -> Any:
    """Theory as lines, trained students as points, alpha_c and alpha_l as vertical lines.

    Parameters
    ----------
    theory : xarray.Dataset
        From `dotphase.curve`, with the semantic and the positional branch.
    critical : xarray.Dataset
        ``alpha_c``, ``alpha_l`` and ``linear_test_error``.
    runs : xarray.Dataset, optional
        From `dotphase.experiments.grid`, at one omega.
    path : path, optional
        Where to write the figure.
    """
    theory = theory.sortby("alpha")
    scale = float(np.atleast_1d(theory.attrs["sigma"])[0]) ** 2
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
        _difference(axes[0], theory, runs)
        for branch in BRANCHES:
            part = theory.sel(branch=branch)
            name, label = OWN[branch]
            _line(axes[1], part, part[name] / scale, branch, f"{label}, {branch}")
            _points(axes[1], runs, name, branch, scale)
            _line(axes[2], part, part["test_error"], branch, branch)
            _points(axes[2], runs, "test_error", branch)
        axes[2].axhline(
            float(critical["linear_test_error"]), color=COLOURS["linear"], ls="-.", lw=1.3,
            label="linear layer",
        )  # fmt: skip
        for axis in axes:
            for name, style in (("alpha_c", "-"), ("alpha_l", ":")):
                place = float(critical[name])
                if np.isfinite(place):
                    text = rf"$\{name} = {place:.3f}$" if axis is axes[0] else None
                    axis.axvline(place, color=ink(), lw=1, ls=style, label=text)
            axis.set_xlabel(ALPHA)
        axes[0].set_ylabel(r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$")
        axes[1].set_ylabel("overlaps")
        axes[2].set_ylabel(r"test error $\epsilon_g$")
        for axis in (axes[0], axes[2]):
            axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        axes[1].set_ylim(bottom=0)
        axes[2].set_ylim(bottom=0)
        for axis in axes:
            axis.legend(loc="best")
        if path is not None:
            save(figure, path)
    return figure


def _difference(axis: Any, theory: xr.Dataset, runs: xr.Dataset | None) -> None:
    pair = [theory.sel(branch=branch) for branch in BRANCHES]
    both = pair[0]["on_branch"].astype(bool) & pair[1]["on_branch"].astype(bool)
    trusted = pair[0]["trusted"].astype(bool) & pair[1]["trusted"].astype(bool)
    gap = (pair[0]["train_loss"] - pair[1]["train_loss"]).where(both)
    axis.axhline(0, color=ink(), lw=0.7)
    axis.plot(gap["alpha"], gap, color=COLOURS["mixed"], label="theory")
    hollow = gap.where(~trusted)
    if bool(np.isfinite(hollow).any()):
        axis.plot(
            gap["alpha"], hollow, "o", ms=4, color=COLOURS["mixed"], mfc=page(),
            label="theory not trusted",
        )  # fmt: skip
    if runs is not None:
        loss = runs["train_loss"].isel(omega=0)
        values = loss.sel(start="semantic") - loss.sel(start="positional")
        mean, error = values.mean("seed"), values.std("seed", ddof=1)
        error = error / np.sqrt(values.sizes["seed"])
        axis.errorbar(
            mean["alpha"], mean, error, fmt="D", ms=4, color=ink(),
            label=f"training, $d = {runs.attrs['d']}$",
        )  # fmt: skip


def _line(axis: Any, part: xr.Dataset, values: xr.DataArray, branch: str, label: str) -> None:
    on_branch, trusted = part["on_branch"].astype(bool), part["trusted"].astype(bool)
    shown = values.where(on_branch)
    axis.plot(part["alpha"], shown, color=COLOURS[branch], label=label)
    hollow = shown.where(~trusted)
    axis.plot(part["alpha"], hollow, MARKERS[branch], ms=4, color=COLOURS[branch], mfc=page())


def _points(axis: Any, runs: xr.Dataset | None, name: str, start: str, scale: float = 1.0) -> None:
    if runs is None:
        return
    values = runs[name].isel(omega=0).sel(start=start) / scale
    mean, error = values.mean("seed"), values.std("seed", ddof=1)
    axis.errorbar(
        mean["alpha"], mean, error / np.sqrt(values.sizes["seed"]), fmt=MARKERS[start], ms=5,
        color=COLOURS[start], mec=ink(), mew=0.6, lw=1,
    )  # fmt: skip
