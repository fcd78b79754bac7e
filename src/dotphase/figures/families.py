"""Several models side by side: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from dotphase.figures.slices import STYLES, draw_slice
from dotphase.figures.style import COLOURS, MARKERS, house_style, ink, page, save

#: Colours of Okabe and Ito for the members of a family, in their order.
SHADES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7F7F7F")


class Member(NamedTuple):
    """A model of a family.

    Attributes
    ----------
    label : what it is called in the figure
    theory : from `dotphase.curve`
    runs : from `dotphase.experiments.grid`, at one omega
    """

    label: str
    theory: xr.Dataset
    runs: xr.Dataset


def plot_family(
    members: Sequence[Member], lines: xr.Dataset | None = None, path: str | Path | None = None
) -> Any:
    """Theory as lines (hollow where it is not trusted), trained students as points.

    Parameters
    ----------
    members : sequence of Member
        The models to compare.
    lines : xarray.Dataset, optional
        ``alpha_c`` and ``alpha_l`` over ``length``, with errors, and ``trained`` crossings: one
        more panel.
    path : path, optional
        Where to write the figure.
    """
    with house_style() as pyplot:
        if lines is None:
            figure, axes = pyplot.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
            panels = axes
        else:
            figure, axes = pyplot.subplots(2, 2, figsize=(8.6, 6.6), layout="constrained")
            panels = axes.ravel()[1:]
            _against_length(axes[0, 0], lines)
        for shade, member in zip(SHADES, members, strict=False):
            runs = member.runs.isel(omega=0)
            draw_slice(panels, member.theory.sortby("alpha"), runs, shade, member.label)
        panels[0].axhline(0, color=ink(), lw=0.7)
        panels[0].set_ylabel(r"$\epsilon_t^{\rm sem} - \epsilon_t^{\rm pos}$")
        panels[1].set_ylabel(r"overlaps $\theta/\sigma^2$ and $m/\sigma^2$")
        panels[2].set_ylabel(r"test error $\epsilon_g$")
        for panel in (panels[0], panels[2]):
            panel.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        for panel in panels:
            panel.set_xlabel(r"sample complexity $\alpha = n/d$")
        for panel in panels[1:]:
            panel.set_ylim(bottom=0)
        for branch, style in STYLES.items():
            symbol = r"$\theta$" if branch == "semantic" else "$m$"
            panels[1].plot([], [], color=ink(), ls=style, marker=MARKERS[branch],
                           label=f"{branch} ({symbol})")  # fmt: skip
        panels[0].legend()
        panels[1].legend()
        if path is not None:
            save(figure, path)
        pyplot.close(figure)
    return figure


def _against_length(axis: Any, lines: xr.Dataset) -> None:
    length = lines["length"].values
    trusted = lines["trusted"].values.astype(bool)
    for name, colour, marker in (("alpha_l", COLOURS["linear"], "^"), ("alpha_c", ink(), "o")):
        values, error = lines[name].values, lines[f"{name}_stderr"].values
        axis.errorbar(length, values, error, color=colour, lw=1.4, label=rf"$\{name}$, theory")
        for chosen, face in ((trusted, colour), (~trusted, page())):
            axis.plot(length[chosen], values[chosen], marker, color=colour, mfc=face, ms=6)
    axis.errorbar(
        length + 0.08, lines["trained"], lines["trained_stderr"], fmt="D", ms=5, lw=1,
        color=COLOURS["mixed"], label=r"$\alpha_c$, training",
    )  # fmt: skip
    axis.set_xticks(length)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("tokens $L$ in a sentence")
    axis.set_ylabel("critical sample complexity")
    axis.legend()


def plot_winners(maps: Sequence[tuple[str, xr.Dataset]], path: str | Path | None = None) -> Any:
    """Which mechanism has the lowest training loss, over alpha and omega.

    Parameters
    ----------
    maps : sequence of (title, dataset)
        From `dotphase.diagram`.
    path : path, optional
        Where to write the figure.
    """
    names = ("positional", "semantic", "mixed")
    with house_style() as pyplot:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        figure, axes = pyplot.subplots(
            1, len(maps), figsize=(3.2 * len(maps) + 0.4, 3.4), layout="constrained",
            sharex=True, sharey=True, squeeze=False,
        )  # fmt: skip
        for axis, (title, theory) in zip(axes[0], maps, strict=True):
            winner = mechanism(theory).transpose("omega", "alpha")
            index = np.select([winner == name for name in names], range(len(names)), np.nan)
            axis.pcolormesh(
                theory["alpha"], theory["omega"], index, shading="nearest", vmin=-0.5,
                vmax=len(names) - 0.5, cmap=ListedColormap([COLOURS[name] for name in names]),
                alpha=0.8,
            )  # fmt: skip
            axis.grid(False)
            doubtful = ~theory["winner_trusted"].astype(bool).transpose("omega", "alpha").values
            for row, column in zip(*np.nonzero(doubtful), strict=True):
                axis.plot(theory["alpha"][column], theory["omega"][row], "x", color="#222222")
            axis.set_title(title)
            axis.set_xlabel(r"sample complexity $\alpha = n/d$")
        axes[0, 0].set_ylabel(r"$\omega$")
        patches = [Patch(color=COLOURS[name], alpha=0.8, label=name) for name in names]
        figure.legend(handles=patches, loc="outside lower center", ncols=len(names))
        if path is not None:
            save(figure, path)
        pyplot.close(figure)
    return figure


def mechanism(theory: xr.Dataset) -> xr.DataArray:
    """Name of the mechanism with the lowest training loss in each cell of a diagram."""
    found = theory["found"].sel(branch="semantic", drop=True)
    winner: xr.DataArray = xr.where(theory["winner"] == "semantic", found, theory["winner"])
    return winner
