"""Curves, points, legend entries and axis labels shared by the figures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.style import COLORS, GRAY, LINE_STYLES, MARKERS, ink_color, page_color

#: Labels of axes.
ALPHA = r"sample complexity $\alpha = n/d$"
TRAIN_LOSS = r"training loss $\epsilon_t$"
TEST_ERROR = r"test error $\epsilon_g$"
LOSS_GAP = r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$"
OVERLAPS = r"overlaps $\theta/\sigma^2$ and $m/\sigma^2$"
#: Labels of the theories.
RS_MINIMA = "replica-symmetric minima"
GRADIENT_DESCENT = r"gradient descent, $d \to \infty$"
#: Symbols of model parameters, and labels of optimizers.
SYMBOLS = {"omega": r"\omega", "sigma": r"\sigma", "ridge": r"\lambda"}
OPTIMIZER_LABELS = {"gd": "gradient descent", "adam": "Adam", "sgd": "SGD", "lbfgs": "L-BFGS"}
#: Order parameter of each branch, and labels of the overlaps.
ORDER_PARAMETERS = {"semantic": "theta", "positional": "m"}
OVERLAP_LABELS = {"theta": r"$\theta/\sigma^2$", "m": r"$m/\sigma^2$"}
#: Symbol of each message-passing overlap, and the branch that gives its color.
AMP_OVERLAPS = {
    "q": (r"$q/\sigma^2$", "uninformed"),
    "m": (r"$|m|/\sigma^2$", "positional"),
    "theta": (r"$|\theta|/\sigma^2$", "semantic"),
}
#: Values stored per message-passing overlap.
AMP_FIELDS = ("predicted", "measured", "stderr")
#: Overlaps below this are zero by symmetry.
MIN_OVERLAP = 1e-6
#: Width of a line where the theory is unreliable or the branch is a saddle.
THIN_LINE = 0.8


def overlap_scale(theory: xr.Dataset) -> float:
    """Return sigma^2 of token 1, the unit of the overlaps."""
    return float(np.atleast_1d(theory.attrs["sigma"])[0]) ** 2


def squeeze_parameter(runs: xr.Dataset) -> xr.Dataset:
    """Drop the parameter dimension of a grid that has a single parameter value."""
    return runs.isel({str(name): 0 for name in runs.dims if name not in ("alpha", "start", "seed")})


def plot_branch(
    axis: Any, branch: xr.Dataset, values: xr.DataArray, *, hollow: Mapping[str, Any], **style: Any
) -> bool:
    """Plot a branch along alpha where it exists.

    The line is thin with open markers where the theory is not trusted, and thin and dotted with
    crosses where the branch is a saddle.

    Parameters
    ----------
    branch : xarray.Dataset
        With ``on_branch`` and ``trusted``.
    values : xarray.DataArray
        Plotted quantity.
    hollow : mapping
        Style of the open markers; their color is that of the line.
    **style
        Style of the line.

    Returns
    -------
    bool
        True if any point is not trusted.
    """
    alpha, values = branch["alpha"], values.where(branch["on_branch"].astype(bool))
    saddle, trusted = is_saddle(branch), branch["trusted"].astype(bool)
    untrusted = values.where(~trusted & ~saddle)
    axis.plot(alpha, values.where(trusted & ~saddle), **style)
    thin = {"marker": "", "lw": THIN_LINE, "label": None}
    axis.plot(alpha, values.where(_with_neighbors(~trusted) & ~saddle), **style | thin)
    if bool(saddle.any()):
        dotted = {"ls": ":", "lw": THIN_LINE, "marker": "x", "ms": 4, "color": style["color"]}
        axis.plot(alpha, values.where(saddle), **dotted)
    axis.plot(alpha, untrusted, ls="none", color=style["color"], mfc=page_color(), **hollow)
    return bool(np.isfinite(untrusted).any())


def _with_neighbors(marked: xr.DataArray) -> xr.DataArray:
    """Add the neighbors along alpha of marked points, where the lines to them end."""
    sides = (marked.shift(alpha=by, fill_value=False) for by in (1, -1))
    return marked | next(sides) | next(sides)


def is_saddle(branch: xr.Dataset) -> xr.DataArray:
    """Return a mask of the points that are known to be saddles."""
    if "kind" not in branch:
        return xr.zeros_like(branch["on_branch"], dtype=bool)
    return branch["kind"] == "saddle"


def add_saddle_entry(axis: Any, color: str = GRAY) -> None:
    """Add the legend entry of saddles: dotted lines with crosses."""
    axis.plot([], [], "x:", color=color, lw=THIN_LINE, ms=4, label="saddle: training leaves it")


def plot_seed_means(axis: Any, values: xr.DataArray, x: Any = None, **style: Any) -> None:
    """Plot means over data sets with standard errors, against `x` or by default alpha."""
    n_seeds = values.sizes["seed"]
    error = values.std("seed", ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else None
    axis.errorbar(
        values["alpha"] if x is None else x, values.mean("seed"), error, **{"lw": 1.0} | style
    )


def plot_message_passing(
    axis: Any, iteration: Any, overlaps: Mapping[str, Any], scale: float
) -> None:
    """Plot measured overlaps as points and predicted ones as lines, against the iteration.

    `overlaps` maps names to (predicted, measured, standard error), in units of `scale`. The first
    iteration overshoots: the axis is scaled to the later ones, and a text gives the peaks outside.
    """
    iteration = np.asarray(iteration)
    # At most about 20 markers, so that they do not hide the lines.
    marked = slice(None, None, max(1, iteration.size // 20))
    values = {name: np.asarray(overlaps[name], float) / scale for name in AMP_OVERLAPS}
    top = 1.65 * max(max(float(rows[0, 2:].max(initial=0.0)) for rows in values.values()), 1e-3)
    peaks = []
    for name, (symbol, branch) in AMP_OVERLAPS.items():
        (predicted, measured, error), color = values[name], COLORS[branch]
        axis.plot(iteration, predicted, color=color, lw=1.1, label=symbol)
        axis.errorbar(
            iteration[marked], measured[marked], np.nan_to_num(error)[marked], fmt=MARKERS[branch],
            ms=3.5, lw=0.8, ls="none", color=color, mec=ink_color(), mew=0.5,
        )  # fmt: skip
        if predicted.max() > top:
            peak = int(np.argmax(predicted))
            peaks.append(f"{symbol} = {predicted[peak]:.2f} at iteration {iteration[peak]}")
    if peaks:
        style = {"transform": axis.transAxes, "va": "top", "fontsize": "small"}
        axis.text(0.06, 0.99, "above the axis: " + "; ".join(peaks), **style)
    axis.set(xlabel="iteration", ylim=(0, top))


def loss_gap(losses: xr.DataArray, along: str) -> xr.DataArray:
    """Return the training loss of the semantic minus that of the positional minimum."""
    return losses.sel({along: "semantic"}, drop=True) - losses.sel({along: "positional"}, drop=True)


def plot_loss_gap(axis: Any, theory: xr.Dataset, **style: Any) -> bool:
    """Plot the difference of the training losses where both branches are minima.

    Style and return value are those of `plot_branch`.
    """
    both = theory[["on_branch", "trusted"]].astype(bool).sel(branch=list(ORDER_PARAMETERS))
    minima = both["on_branch"] & ~is_saddle(theory)
    state = xr.Dataset({"on_branch": minima, "trusted": both["trusted"]}).all("branch")
    gap = loss_gap(theory["train_loss"], "branch")
    return plot_branch(axis, state, gap, hollow={"marker": "D", "ms": 3.5}, **style)


def plot_slice(axes: Any, theory: xr.Dataset, runs: xr.Dataset, color: str, label: str) -> None:
    """Plot loss difference, overlaps and test error of one model into three axes."""
    theory, runs = theory.sortby("alpha"), squeeze_parameter(runs)
    points = {"color": color, "ms": 4.5, "mec": ink_color(), "mew": 0.5}
    plot_loss_gap(axes[0], theory, color=color, label=label)
    plot_seed_means(axes[0], loss_gap(runs["train_loss"], "start"), fmt="D", **points)
    scale = overlap_scale(theory)
    for name, style in LINE_STYLES.items():
        branch, trained = theory.sel(branch=name), runs.sel(start=name)
        hollow = {"marker": MARKERS[name], "ms": 3.5}
        for axis, part, size in (
            (axes[1], ORDER_PARAMETERS[name], scale),
            (axes[2], "test_error", 1.0),
        ):
            plot_branch(axis, branch, branch[part] / size, hollow=hollow, color=color, ls=style)
            plot_seed_means(axis, trained[part] / size, fmt=MARKERS[name], **points)


def label_slice(axes: Any) -> None:
    """Format the three axes of `plot_slice`; the caller sets the axis labels."""
    axes[0].axhline(0, color=ink_color(), lw=0.7)
    use_scientific_ticks(axes[0], axes[2])
    for axis in axes[1:]:
        axis.set_ylim(bottom=0)


def add_branch_entries(axis: Any) -> None:
    """Add legend entries for the line style and marker of each branch."""
    for name, dashes in LINE_STYLES.items():
        text = f"{name} ({OVERLAP_LABELS[ORDER_PARAMETERS[name]]})"
        axis.plot([], [], color=ink_color(), ls=dashes, marker=MARKERS[name], label=text)


def add_theory_entries(axis: Any, theory: str, runs: xr.Dataset | None = None) -> None:
    """Add legend entries for the theory lines and the training points."""
    axis.plot([], [], color=GRAY, label=theory)
    if runs is not None:
        text = f"training, $d = {runs.attrs['d']}$"
        axis.plot([], [], "D", color=GRAY, mec=ink_color(), mew=0.5, ls="none", label=text)


def add_hollow_entry(axis: Any, text: str = "theory not trusted", color: str = GRAY) -> None:
    """Add the legend entry of open markers."""
    axis.plot([], [], "o", color=color, mfc=page_color(), label=text)


def add_slice_entries(axis: Any, runs: xr.Dataset) -> None:
    """Add legend entries for the line styles and markers of `plot_slice`."""
    add_branch_entries(axis)
    add_theory_entries(axis, RS_MINIMA, runs)
    add_hollow_entry(axis)
    add_saddle_entry(axis)


def plot_against_dimension(
    axis: Any, theory: xr.Dataset, runs: xr.Dataset, names: Mapping[str, str], size: float = 1.0
) -> None:
    """Plot mean and standard deviation of runs against d, and the limit as horizontal lines.

    `names` maps each start to its quantity, which is plotted in units of `size`.
    """
    for shift, (start, name) in zip((0.97, 1.03), names.items(), strict=True):
        values, color = runs[name].sel(start=start) / size, COLORS[start]
        level = float(theory[name].sel(branch=start)) / size
        axis.axhline(level, color=color, lw=1.3, label=f"{start}, limit")
        axis.errorbar(
            runs["d"] * shift, values.mean("seed"), values.std("seed", ddof=1), capsize=2, lw=1,
            fmt=MARKERS[start], color=color, label=f"{start} start, mean and spread",
        )  # fmt: skip
    format_dimension_axis(axis, runs["d"].values)


def format_dimension_axis(axis: Any, d: Any) -> None:
    """Make the x axis logarithmic, with ticks at the given dimensions."""
    axis.set(xscale="log", xlabel="dimension $d$")
    axis.set_xticks(d, [f"{value:g}" for value in d], fontsize="small")
    axis.set_xticks([], minor=True)


def plot_overlap_plane(axis: Any, theory: xr.Dataset, scale: float) -> None:
    """Plot the branches at one alpha as stars in the (m, theta) plane, in units of `scale`."""
    for branch in theory["branch"].values.tolist():
        point = theory.sel(branch=branch)
        axis.plot(
            float(point["m"]) / scale, float(point["theta"]) / scale, "*", ms=13,
            color=COLORS[branch], mec=ink_color(), mew=0.8,
        )  # fmt: skip
    axis.plot([], [], "*", ms=11, color="none", mec=ink_color(), label=RS_MINIMA)
    axis.set_xlabel(r"$|m|/\sigma^2$")


def plot_linear_baseline(axis: Any, value: Any, label: str = "linear positional layer") -> None:
    """Plot the test error of the linear layer as a horizontal line, if it is finite."""
    if not np.isfinite(float(value)):
        return
    axis.axhline(float(value), color=COLORS["linear"], lw=1.3, ls="-.", label=label)


def use_scientific_ticks(*axes: Any) -> None:
    """Write the power of ten once, at the top of each y axis."""
    for axis in axes:
        axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))


def run_title(result: Any, *details: str) -> str:
    """Return a title with the start, dimension and alpha of training or message passing."""
    size = rf"$d = {result.d}$, $\alpha = {result.alpha:g}$"
    return ", ".join([f"{result.start} start", *details, size])
