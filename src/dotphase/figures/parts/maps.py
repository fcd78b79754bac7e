"""Maps over alpha and a parameter, with critical lines, hatching and legend entries."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap

from dotphase.figures.parts.style import COLORS, MAP_INK, empty_color, ink_color

#: Model error in percent at the upper end of the color scale.
MAX_MODEL_ERROR = 10
#: Kind, marker and legend label of fixed points that are not known to be minima.
KIND_MARKERS = (
    ("saddle", "x", "saddle"),
    ("marginal", "|", "minimum or saddle: undetermined"),
    ("unknown", "+", "kind not measured"),
)
#: Colors of the semantic minus the positional training loss: blue where the semantic minimum is
#: lower, orange where the positional one is.
LOSS_GAP_COLORS = LinearSegmentedColormap.from_list(
    "loss gap", ["#003A5D", COLORS["semantic"], "#F7F7F7", COLORS["positional"], "#6B2F00"]
)
#: Colors of the gain over the linear layer: pink where the layer is better.
GAIN_COLORS = "PiYG"
#: Meaning of the upper and the lower half of both color maps.
LOSS_GAP_MEANING = ("positional\nwins", "semantic\nwins")
GAIN_MEANING = ("attention\nbetter", "linear\nbetter")
#: Name, line style and label of the critical lines.
CRITICAL_LINES = (("alpha_c", "-", r"$\alpha_c$"), ("alpha_l", "--", r"$\alpha_l$"))


@dataclass(frozen=True)
class Panel:
    """One column of maps.

    Attributes
    ----------
    title : title of the column
    colors : color map or its name
    meaning : words for the upper and the lower end of the colors
    theory, trained : values over ``alpha`` and ``omega``
    centered : True to center the colors on zero
    comparison : True if the values compare two branches, one of which may be missing
    reached : mask of theory cells where the end of gradient descent replaces a missing minimum
    """

    title: str
    colors: str | Colormap
    theory: xr.DataArray
    trained: xr.DataArray
    centered: bool = True
    comparison: bool = False
    reached: xr.DataArray | None = None
    meaning: tuple[str, str] = ("", "")


def gain_panel(theory: xr.Dataset, runs: xr.Dataset) -> Panel:
    """Return the test-error gain of the lowest-loss minimum over the linear layer as a panel."""
    loss, error = runs["train_loss"], runs["test_error"]
    lower = loss.sel(start="semantic") < loss.sel(start="positional")
    best = xr.where(lower, error.sel(start="semantic"), error.sel(start="positional"))
    trained = (runs["linear_test_error"] - best).mean("seed")
    label = r"$\epsilon_{\rm lin} - \epsilon_g$, lowest minimum  $[10^{-3}]$"
    gain = 1e3 * theory["test_gain"]
    return Panel(label, GAIN_COLORS, gain, 1e3 * trained, meaning=GAIN_MEANING)


def plot_map(
    axis: Any, field: xr.DataArray, parameter: str, colors: str | Colormap, low: float, high: float
) -> Any:
    """Plot a field over alpha and the parameter; missing cells keep the empty color."""
    axis.set_facecolor(empty_color())
    axis.grid(False)
    return axis.pcolormesh(
        field["alpha"], field[parameter], field.transpose(parameter, "alpha"), cmap=colors,
        vmin=low, vmax=high, shading="nearest", rasterized=True,
    )  # fmt: skip


def max_abs(*fields: xr.DataArray) -> float:
    """Return the largest finite absolute value of the fields, 1 if there is none."""
    maxima = [float(np.abs(field).max()) for field in fields]
    return max((maximum for maximum in maxima if np.isfinite(maximum)), default=1.0)


def untrusted_cells(theory: xr.Dataset, parameter: str) -> np.ndarray:
    """Return the mask of cells where the theory of the winning branch is not trusted."""
    return ~theory["winner_trusted"].astype(bool).transpose(parameter, "alpha").values


def hatch_untrusted(axis: Any, theory: xr.Dataset, parameter: str) -> bool:
    """Hatch the cells of `untrusted_cells`; return True if there are any."""
    untrusted = untrusted_cells(theory, parameter)
    if min(untrusted.shape) > 1 and untrusted.any():
        x, y = _edges(theory["alpha"].values), _edges(theory[parameter].values)
        corners = ((0, 0), (0, 1), (1, 1), (1, 0))
        cells = [[(x[j + b], y[i + a]) for a, b in corners] for i, j in np.argwhere(untrusted)]
        colors: dict[str, Any] = {"facecolors": "none", "edgecolors": MAP_INK, "hatch": "////"}
        axis.add_collection(PolyCollection(cells, linewidths=0.0, **colors))
    return bool(untrusted.any())


def _edges(centers: np.ndarray) -> np.ndarray:
    """Return the edges of cells with the given centers."""
    midpoints = (centers[1:] + centers[:-1]) / 2
    first, last = 2 * centers[0] - midpoints[0], 2 * centers[-1] - midpoints[-1]
    return np.concatenate([[first], midpoints, [last]])


def add_hatch_entry(axis: Any) -> None:
    """Add the legend entry of hatched cells."""
    axis.fill_between([], [], [], fc="none", ec=MAP_INK, hatch="////", lw=0.0, label="not trusted")


#: Pale color of cells in which this branch alone is a minimum.
SINGLE_BRANCH_COLORS = {"positional": "#F3D6C0", "semantic": "#BCD8EA", "none": "#DDDDDD"}


def plot_single_branch_cells(
    axis: Any, field: xr.DataArray, theory: xr.Dataset, parameter: str
) -> None:
    """Color the cells that have a single branch, by that branch."""
    winner = theory["winner"].transpose(parameter, "alpha").values
    missing = np.isnan(field.transpose(parameter, "alpha").values)
    for name, color in SINGLE_BRANCH_COLORS.items():
        cells = np.where(missing & (winner == name), 1.0, np.nan)
        if min(cells.shape) > 1 and bool(np.isfinite(cells).any()):
            axis.pcolormesh(
                theory["alpha"], theory[parameter], cells, cmap=ListedColormap([color]),
                shading="nearest", rasterized=True,
            )  # fmt: skip
            text = "neither branch" if name == "none" else f"{name} branch only"
            axis.plot([], [], ls="none", marker="s", ms=7, mfc=color, mec="none", label=text)


def plot_critical_lines(axis: Any, lines: xr.Dataset, parameter: str, color: str = MAP_INK) -> None:
    """Plot alpha_c and alpha_l where they are finite."""
    for name, style, label in CRITICAL_LINES:
        if bool(np.isfinite(lines[name]).any()):
            axis.plot(lines[name], lines[parameter], color="#FFFFFF", lw=3.6, alpha=0.8)
            axis.plot(lines[name], lines[parameter], ls=style, color=color, lw=1.8, label=label)


def mark_filled_cells(axis: Any, reached: xr.DataArray, parameter: str) -> None:
    """Dot the cells in which the end of gradient descent replaces a missing minimum."""
    cells = reached.transpose(parameter, "alpha").values
    if cells.any():
        alpha, value = np.meshgrid(reached["alpha"], reached[parameter])
        label = r"one branch missing: gradient descent, $d \to \infty$"
        style = {"color": MAP_INK, "ms": 1.6, "ls": "none", "label": label}
        axis.plot(alpha[cells], value[cells], ".", **style)


def add_missing_entry(axis: Any, text: str = "one branch missing", **style: Any) -> None:
    """Add the legend entry of cells with the empty color."""
    axis.plot([], [], ls="none", marker="s", mfc=empty_color(), label=text, **style)


def plot_kind_map(axis: Any, branch: xr.Dataset, parameter: str) -> Any:
    """Plot the kind of fixed point of one branch in every cell.

    The color of a minimum is its model error in percent; other kinds have markers.
    """
    kind = branch["kind"].transpose(parameter, "alpha")
    model_error = 100 * branch["model_error"].where(~kind.isin(("saddle", "missing")))
    mesh = plot_map(axis, model_error, parameter, "YlGn", 0, MAX_MODEL_ERROR)
    alpha, value = np.meshgrid(branch["alpha"], branch[parameter])
    size = min(max(110 / max(kind.shape), 1.5), 6)
    for name, mark, _ in KIND_MARKERS:
        cells = (kind == name).values
        axis.plot(alpha[cells], value[cells], mark, color=ink_color(), ms=size, mew=0.8, ls="none")
    return mesh


def add_kind_entries(axis: Any) -> None:
    """Add legend entries for the markers of `plot_kind_map`."""
    for _, mark, text in KIND_MARKERS:
        axis.plot([], [], mark, color=ink_color(), ls="none", ms=5, label=text)
    add_missing_entry(axis, "missing: no such fixed point", mec="none")
