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
#: Parameters of models in mathematics, and what optimizers are called.
SYMBOLS = {"omega": r"\omega", "sigma": r"\sigma", "ridge": r"\lambda"}
OPTIMIZERS = {"gd": "gradient descent", "adam": "Adam", "sgd": "SGD", "lbfgs": "L-BFGS"}
#: The overlap that each branch has, and how it is written.
OWN = {"semantic": "theta", "positional": "m"}
SCALED = {"theta": r"$\theta/\sigma^2$", "m": r"$m/\sigma^2$"}
#: Overlaps of message passing: how they are written, and the branch whose colour they have.
PASSED = {
    "q": ("$q$", "uninformed"),
    "m": ("$|m|$", "positional"),
    "theta": (r"$|\theta|$", "semantic"),
}
PASSED_PARTS = ("predicted", "measured", "stderr")
#: Width of lines where the theory is not to be trusted.
THIN = 0.8


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
    """A branch along alpha where it exists; thin, with hollow markers, where it is not trusted.

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
    saddle, trusted = is_saddle(branch), branch["trusted"].astype(bool)
    doubtful = shown.where(~trusted & ~saddle)
    axis.plot(branch["alpha"], shown.where(trusted & ~saddle), **style)
    bare = {"marker": "", "lw": THIN, "label": None}
    axis.plot(branch["alpha"], shown.where(_and_beside(~trusted) & ~saddle), **style | bare)
    if bool(saddle.any()):
        thin = {"ls": ":", "lw": THIN, "marker": "x", "ms": 4, "color": style["color"]}
        axis.plot(branch["alpha"], shown.where(saddle), **thin)
    axis.plot(branch["alpha"], doubtful, ls="none", color=style["color"], mfc=page(), **hollow)
    return bool(np.isfinite(doubtful).any())


def _and_beside(marked: xr.DataArray) -> xr.DataArray:
    """Marked points and their neighbours along alpha: the ends of lines that touch them."""
    sides = (marked.shift(alpha=by, fill_value=False) for by in (1, -1))
    return marked | next(sides) | next(sides)


def is_saddle(branch: xr.Dataset) -> xr.DataArray:
    """Where a branch is known to be a saddle."""
    if "kind" not in branch:
        return xr.zeros_like(branch["on_branch"], dtype=bool)
    return branch["kind"] == "saddle"


def saddle_entry(axis: Any, colour: str = GREY) -> None:
    """What dotted lines with crosses mean, in the legend."""
    axis.plot([], [], "x:", color=colour, lw=THIN, ms=4, label="saddle: training leaves it")


def seed_points(axis: Any, values: xr.DataArray, x: Any = None, **style: Any) -> None:
    """Means over data sets with their standard errors, against alpha unless `x` is given."""
    count = values.sizes["seed"]
    error = values.std("seed", ddof=1) / np.sqrt(count) if count > 1 else None
    axis.errorbar(
        values["alpha"] if x is None else x, values.mean("seed"), error, **{"lw": 1.0} | style
    )


def message_passing_lines(axis: Any, iteration: Any, overlaps: Mapping[str, Any]) -> None:
    """Measured overlaps as points and predicted ones as lines, against the iteration.

    `overlaps` has (predicted, measured, standard error) by name. The first iteration overshoots by
    far: the axis is for what follows, and says how far what leaves it goes.
    """
    iteration = np.asarray(iteration)
    # Few markers: every point would hide the lines.
    every = slice(None, None, max(1, iteration.size // 20))
    found = {name: np.asarray(overlaps[name], float) for name in PASSED}
    top = 1.65 * max(max(float(part[0, 2:].max(initial=0.0)) for part in found.values()), 1e-3)
    outside = []
    for name, (symbol, kind) in PASSED.items():
        (predicted, measured, error), colour = found[name], COLOURS[kind]
        axis.plot(iteration, predicted, color=colour, lw=1.1, label=symbol)
        axis.errorbar(
            iteration[every], measured[every], np.nan_to_num(error)[every], fmt=MARKERS[kind],
            ms=3.5, lw=0.8, ls="none", color=colour, mec=ink(), mew=0.5,
        )  # fmt: skip
        if predicted.max() > top:
            place = int(np.argmax(predicted))
            outside.append(f"{symbol} = {predicted[place]:.2f} at iteration {iteration[place]}")
    if outside:
        style = {"transform": axis.transAxes, "va": "top", "fontsize": "small"}
        axis.text(0.06, 0.99, "outside: " + "; ".join(outside), **style)
    axis.set(xlabel="iteration", ylim=(0, top))


def loss_gap(losses: xr.DataArray, along: str) -> xr.DataArray:
    """Training loss of the semantic minimum less that of the positional one."""
    return losses.sel({along: "semantic"}, drop=True) - losses.sel({along: "positional"}, drop=True)


def gap_line(axis: Any, theory: xr.Dataset, **style: Any) -> bool:
    """Difference of the training losses where both branches are minima, as `branch_line`."""
    both = theory[["on_branch", "trusted"]].astype(bool).sel(branch=list(OWN))
    minima = both["on_branch"] & ~is_saddle(theory)
    state = xr.Dataset({"on_branch": minima, "trusted": both["trusted"]}).all("branch")
    gap = loss_gap(theory["train_loss"], "branch")
    return branch_line(axis, state, gap, hollow={"marker": "D", "ms": 3.5}, **style)


def slice_panels(axes: Any, theory: xr.Dataset, runs: xr.Dataset, colour: str, label: str) -> None:
    """Loss difference, overlaps and test error of one model, into three axes."""
    theory, runs = theory.sortby("alpha"), at_one_value(runs)
    points = {"color": colour, "ms": 4.5, "mec": ink(), "mew": 0.5}
    gap_line(axes[0], theory, color=colour, label=label)
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


def branch_legend(axis: Any) -> None:
    """Entries that say which line and marker is which branch, where colours say something else."""
    for name, dashes in STYLES.items():
        text = f"{name} ({SCALED[OWN[name]]})"
        axis.plot([], [], color=ink(), ls=dashes, marker=MARKERS[name], label=text)


def theory_entries(axis: Any, theory: str, runs: xr.Dataset | None = None) -> None:
    """Which theory the lines are, and what the points are, in the legend."""
    axis.plot([], [], color=GREY, label=theory)
    if runs is not None:
        text = f"training, $d = {runs.attrs['d']}$"
        axis.plot([], [], "D", color=GREY, mec=ink(), mew=0.5, ls="none", label=text)


def hollow_entry(axis: Any, text: str = "theory not trusted", colour: str = GREY) -> None:
    """What hollow points mean, in the legend."""
    axis.plot([], [], "o", color=colour, mfc=page(), label=text)


def slice_entries(axis: Any, runs: xr.Dataset) -> None:
    """All that colours do not say in `slice_panels`, in the legend."""
    branch_legend(axis)
    theory_entries(axis, MINIMA, runs)
    hollow_entry(axis)
    saddle_entry(axis)


def against_dimension(
    axis: Any, theory: xr.Dataset, runs: xr.Dataset, names: Mapping[str, str], size: float = 1.0
) -> None:
    """What runs give against d, mean and standard deviation, and the limit as lines.

    `names` has the quantity that is shown for each start, in units of `size`.
    """
    for shift, (start, name) in zip((0.97, 1.03), names.items(), strict=True):
        values, colour = runs[name].sel(start=start) / size, COLOURS[start]
        level = float(theory[name].sel(branch=start)) / size
        axis.axhline(level, color=colour, lw=1.3, label=f"{start}, limit")
        axis.errorbar(
            runs["d"] * shift, values.mean("seed"), values.std("seed", ddof=1), capsize=2, lw=1,
            fmt=MARKERS[start], color=colour, label=f"{start} start, mean and spread",
        )  # fmt: skip
    dimension_axis(axis, runs["d"].values)


def dimension_axis(axis: Any, d: Any) -> None:
    """A logarithmic axis with the dimensions that there are."""
    axis.set(xscale="log", xlabel="dimension $d$")
    axis.set_xticks(d, [f"{value:g}" for value in d], fontsize="small")
    axis.set_xticks([], minor=True)


def overlap_plane(axis: Any, theory: xr.Dataset, scale: float) -> None:
    """The branches at one alpha as stars in the plane of m and theta, in units of `scale`."""
    for branch in theory["branch"].values.tolist():
        point = theory.sel(branch=branch)
        axis.plot(
            float(point["m"]) / scale, float(point["theta"]) / scale, "*", ms=13,
            color=COLOURS[branch], mec=ink(), mew=0.8,
        )  # fmt: skip
    axis.plot([], [], "*", ms=11, color="none", mec=ink(), label=MINIMA)
    axis.set_xlabel(r"$|m|/\sigma^2$")


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
