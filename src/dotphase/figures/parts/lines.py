"""Lines, points and labels that several figures have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.style import COLOURS, GREY, MARKERS, STYLES, ink, page

#: Labels of axes.
ALPHA = r"sample complexity $\alpha = n/d$"
TRAIN_LOSS = r"training loss $\epsilon_t$"
TEST_ERROR = r"test error $\epsilon_g$"
LOSS_GAP = r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$"
OVERLAPS = r"overlaps $\theta/\sigma^2$ and $m/\sigma^2$"
#: Which theory a line is.
MINIMA = "replica-symmetric minima"
DESCENT = r"gradient descent, $d \to \infty$"
#: Parameters of models in mathematics, and what optimisers are called.
SYMBOLS = {"omega": r"\omega", "sigma": r"\sigma", "ridge": r"\lambda"}
OPTIMISERS = {"gd": "gradient descent", "adam": "Adam", "sgd": "SGD", "lbfgs": "L-BFGS"}
#: The overlap that each branch has.
OWN = {"semantic": "theta", "positional": "m"}


def overlap_scale(theory: xr.Dataset) -> float:
    """sigma^2 of token 1, by which overlaps are divided."""
    return float(np.atleast_1d(theory.attrs["sigma"])[0]) ** 2


def at_one_value(runs: xr.Dataset) -> xr.Dataset:
    """Runs of a grid at the only value of its parameter."""
    return runs.isel({str(name): 0 for name in runs.dims if name not in ("alpha", "start", "seed")})


def branch_line(
    axis: Any,
    branch: xr.Dataset,
    values: xr.DataArray,
    *,
    hollow: Mapping[str, Any],
    **style: Any,
) -> bool:
    """A branch along alpha where it exists, with hollow markers where it is not trusted.

    Where it is a saddle its line is thin and dotted, with crosses.

    Parameters
    ----------
    branch : xarray.Dataset
        With ``on_branch`` and ``trusted``.
    values : xarray.DataArray
        What is drawn.
    hollow : mapping
        Style of the markers; their colour is that of the line.
    **style
        Of the line.

    Returns
    -------
    bool
        Whether any point is not trusted.
    """
    shown = values.where(branch["on_branch"].astype(bool))
    saddle = is_saddle(branch)
    doubtful = shown.where(~branch["trusted"].astype(bool) & ~saddle)
    axis.plot(branch["alpha"], shown.where(~saddle), **style)
    if bool(saddle.any()):
        thin = {"ls": ":", "lw": 0.9, "marker": "x", "ms": 4, "color": style["color"]}
        axis.plot(branch["alpha"], shown.where(saddle), **thin)
    axis.plot(branch["alpha"], doubtful, ls="none", color=style["color"], mfc=page(), **hollow)
    return bool(np.isfinite(doubtful).any())


def is_saddle(branch: xr.Dataset) -> xr.DataArray:
    """Where a branch is known to be a saddle."""
    if "kind" not in branch:
        return xr.zeros_like(branch["on_branch"], dtype=bool)
    return branch["kind"] == "saddle"


def saddle_entry(axis: Any, colour: str = GREY) -> None:
    """What dotted lines with crosses mean, in the legend."""
    axis.plot([], [], "x:", color=colour, lw=0.9, ms=4, label="saddle: training leaves it")


def seed_points(axis: Any, values: xr.DataArray, x: Any = None, **style: Any) -> None:
    """Means over data sets with their standard errors, against alpha unless `x` is given."""
    count = values.sizes["seed"]
    error = values.std("seed", ddof=1) / np.sqrt(count) if count > 1 else None
    axis.errorbar(
        values["alpha"] if x is None else x, values.mean("seed"), error, **{"lw": 1.0} | style
    )


def loss_gap(losses: xr.DataArray, along: str) -> xr.DataArray:
    """Training loss of the semantic minimum less that of the positional one."""
    return losses.sel({along: "semantic"}, drop=True) - losses.sel({along: "positional"}, drop=True)


def slice_panels(axes: Any, theory: xr.Dataset, runs: xr.Dataset, colour: str, label: str) -> None:
    """Loss difference, overlaps and test error of one model, into three axes."""
    theory, runs = theory.sortby("alpha"), at_one_value(runs)
    points = {"color": colour, "ms": 4.5, "mec": ink(), "mew": 0.5}
    loss = theory["train_loss"].where(theory["on_branch"].astype(bool) & ~is_saddle(theory))
    axes[0].plot(theory["alpha"], loss_gap(loss, "branch"), color=colour, label=label)
    seed_points(axes[0], loss_gap(runs["train_loss"], "start"), fmt="D", **points)
    scale = overlap_scale(theory)
    for name, style in STYLES.items():
        branch, trained = theory.sel(branch=name), runs.sel(start=name)
        hollow = {"marker": MARKERS[name], "ms": 3.5}
        for axis, part, size in ((axes[1], OWN[name], scale), (axes[2], "test_error", 1.0)):
            branch_line(axis, branch, branch[part] / size, hollow=hollow, color=colour, ls=style)
            seed_points(axis, trained[part] / size, fmt=MARKERS[name], **points)


def label_slice(axes: Any) -> None:
    """Axes of the three panels of a slice; their labels are set by the figure."""
    axes[0].axhline(0, color=ink(), lw=0.7)
    scientific(axes[0], axes[2])
    for axis in axes[1:]:
        axis.set_ylim(bottom=0)


def branch_legend(axis: Any, texts: Mapping[str, str]) -> None:
    """Entries that say which line and marker is which branch, where colours say something else."""
    for name, text in texts.items():
        axis.plot([], [], color=ink(), ls=STYLES[name], marker=MARKERS[name], label=text)


def theory_entries(axis: Any, theory: str, runs: xr.Dataset | None = None) -> None:
    """Which theory the lines are, and what the points are, in the legend."""
    axis.plot([], [], color=GREY, label=theory)
    if runs is not None:
        text = f"training, $d = {runs.attrs['d']}$"
        axis.plot([], [], "D", color=GREY, mec=ink(), mew=0.5, ls="none", label=text)


def hollow_entry(axis: Any, text: str = "theory not trusted", colour: str = GREY) -> None:
    """What hollow points mean, in the legend."""
    axis.plot([], [], "o", color=colour, mfc=page(), label=text)


def linear_level(axis: Any, value: Any, label: str = "linear positional layer") -> None:
    """The test error of the linear layer, where there is one."""
    if not np.isfinite(float(value)):
        return
    axis.axhline(float(value), color=COLOURS["linear"], lw=1.3, ls="-.", label=label)


def scientific(*axes: Any) -> None:
    """Powers of ten once, at the top of the axis."""
    for axis in axes:
        axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))


def run_title(result: Any, *more: str) -> str:
    """Start, dimension and alpha of training or message passing."""
    size = rf"$d = {result.d}$, $\alpha = {result.alpha:g}$"
    return ", ".join([f"{result.start} start", *more, size])
