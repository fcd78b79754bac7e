"""Maps over alpha and a parameter, and what lies on top of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap

from dotphase.figures.parts.style import DARK, ink, quiet

#: Model error in per cent at which the colours of a minimum end.
LARGEST_SHOWN = 10
#: Marks of fixed points that are not known to be minima, and what they mean.
KIND_MARKS = (
    ("saddle", "x", "saddle"),
    ("marginal", ".", "minimum or saddle: cannot be told"),
    ("unknown", "+", "kind not measured"),
)
#: Critical lines, how they are drawn and what they are called.
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
    comparison : whether it compares two branches, one of which may be missing
    reached : cells of the theory in which gradient descent stands for a missing minimum
    """

    title: str
    colours: str
    theory: xr.DataArray
    trained: xr.DataArray
    centred: bool = True
    comparison: bool = False
    reached: xr.DataArray | None = None


def gain_panel(theory: xr.Dataset, runs: xr.Dataset) -> Panel:
    """Gain in test error over the linear layer, of the minimum with the lowest training loss."""
    loss, error = runs["train_loss"], runs["test_error"]
    lower = loss.sel(start="semantic") < loss.sel(start="positional")
    best = xr.where(lower, error.sel(start="semantic"), error.sel(start="positional"))
    trained = (runs["linear_test_error"] - best).mean("seed")
    label = r"$\epsilon_{\rm lin} - \epsilon_g$, lowest minimum  $[10^{-3}]$"
    return Panel(label, "RdBu", 1e3 * theory["test_gain"], 1e3 * trained)


def draw_map(
    axis: Any, field: xr.DataArray, parameter: str, colours: str, low: float, high: float
) -> Any:
    """Colours over alpha and the parameter; quiet where there is nothing."""
    axis.set_facecolor(quiet())
    axis.grid(False)
    return axis.pcolormesh(
        field["alpha"], field[parameter], field.transpose(parameter, "alpha"), cmap=colours,
        vmin=low, vmax=high, shading="nearest", rasterized=True,
    )  # fmt: skip


def largest(*fields: xr.DataArray) -> float:
    """The largest size, at least something to scale colours by."""
    sizes = [float(np.abs(field).max()) for field in fields]
    return max((size for size in sizes if np.isfinite(size)), default=1.0)


def doubtful_cells(theory: xr.Dataset, parameter: str) -> np.ndarray:
    """Where the theory of the winning branch is not to be trusted."""
    return ~theory["winner_trusted"].astype(bool).transpose(parameter, "alpha").values


def hatch(axis: Any, theory: xr.Dataset, parameter: str) -> bool:
    """Hatching of the cells where the theory of the winning branch is not to be trusted.

    Returns whether there are any.
    """
    doubtful = doubtful_cells(theory, parameter)
    if min(doubtful.shape) > 1 and doubtful.any():
        x, y = _edges(theory["alpha"].values), _edges(theory[parameter].values)
        corners = ((0, 0), (0, 1), (1, 1), (1, 0))
        cells = [[(x[j + b], y[i + a]) for a, b in corners] for i, j in np.argwhere(doubtful)]
        colours: dict[str, Any] = {"facecolors": "none", "edgecolors": DARK, "hatch": "////"}
        axis.add_collection(PolyCollection(cells, linewidths=0.0, **colours))
    return bool(doubtful.any())


def _edges(centres: np.ndarray) -> np.ndarray:
    """Edges of the cells around given centres."""
    middle = (centres[1:] + centres[:-1]) / 2
    ends = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[ends[0]], middle, [ends[1]]])


def hatch_entry(axis: Any) -> None:
    """What hatching means, in the legend."""
    axis.fill_between([], [], [], fc="none", ec=DARK, hatch="////", lw=0.0, label="not trusted")


#: Where one branch is missing: a pale shade of the colour of the other.
ONLY = {"positional": "#F3D6C0", "semantic": "#BCD8EA", "none": "#DDDDDD"}


def lone_branches(axis: Any, field: xr.DataArray, theory: xr.Dataset, parameter: str) -> None:
    """Cells where there is nothing to compare, by the branch that is there."""
    winner = theory["winner"].transpose(parameter, "alpha").values
    missing = np.isnan(field.transpose(parameter, "alpha").values)
    for name, colour in ONLY.items():
        here = np.where(missing & (winner == name), 1.0, np.nan)
        if min(here.shape) > 1 and bool(np.isfinite(here).any()):
            axis.pcolormesh(
                theory["alpha"], theory[parameter], here, cmap=ListedColormap([colour]),
                shading="nearest", rasterized=True,
            )  # fmt: skip
            text = "neither branch" if name == "none" else f"{name} branch only"
            axis.plot([], [], ls="none", marker="s", ms=7, mfc=colour, mec="none", label=text)


def critical_lines(axis: Any, lines: xr.Dataset, parameter: str, colour: str = DARK) -> None:
    """alpha_c and alpha_l, where there are any."""
    for name, style, label in LINES:
        if bool(np.isfinite(lines[name]).any()):
            axis.plot(lines[name], lines[parameter], color="#FFFFFF", lw=3.6, alpha=0.8)
            axis.plot(lines[name], lines[parameter], ls=style, color=colour, lw=1.8, label=label)


def filled_cells(axis: Any, reached: xr.DataArray, parameter: str) -> None:
    """Dots on cells in which gradient descent stands for a minimum that is missing."""
    cells = reached.transpose(parameter, "alpha").values
    if cells.any():
        alpha, value = np.meshgrid(reached["alpha"], reached[parameter])
        label = r"one branch missing: gradient descent, $d \to \infty$"
        style = {"color": DARK, "ms": 1.6, "ls": "none", "label": label}
        axis.plot(alpha[cells], value[cells], ".", **style)


def missing_entry(axis: Any, text: str = "one branch missing", **style: Any) -> None:
    """What the quiet areas are, in the legend."""
    axis.plot([], [], ls="none", marker="s", mfc=quiet(), label=text, **style)


def kind_map(axis: Any, branch: xr.Dataset, parameter: str) -> Any:
    """One branch over alpha and the parameter: what kind of point it is in every cell.

    Colours where it is a minimum, by how much symmetry breaking would change it, in per cent; marks
    elsewhere.
    """
    kind = branch["kind"].transpose(parameter, "alpha")
    broken = 100 * branch["model_error"].where(~kind.isin(("saddle", "missing")))
    mesh = draw_map(axis, broken, parameter, "YlGn", 0, LARGEST_SHOWN)
    alpha, value = np.meshgrid(branch["alpha"], branch[parameter])
    room = 110 / max(kind.shape)
    for name, mark, _ in KIND_MARKS:
        there = (kind == name).values
        size = min(max(room, 1.5), 6)
        axis.plot(alpha[there], value[there], mark, color=ink(), ms=size, mew=0.8, ls="none")
    return mesh


def kind_entries(axis: Any) -> None:
    """What the marks of `kind_map` mean, in the legend."""
    for _, mark, text in KIND_MARKS:
        axis.plot([], [], mark, color=ink(), ls="none", ms=5, label=text)
    missing_entry(axis, "missing: no such fixed point", mec="none")
