"""Mechanism with the lowest training loss, over alpha and omega."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import ALPHA, COLORS, MAP_INK, new_figure, untrusted_cells

NAMES = ("positional", "semantic", "mixed")


def plot_winners(maps: Sequence[tuple[str, xr.Dataset]], path: str | Path | None = None) -> Any:
    """Draw the mechanism with the lowest training loss, over alpha and omega.

    Parameters
    ----------
    maps : sequence of (title, dataset)
        From `dotphase.diagram`.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    shared = {"sharex": True, "sharey": True, "squeeze": False}
    size = (3.2 * len(maps) + 0.4, 3.4)
    with new_figure(path, 1, len(maps), size=size, **shared) as (figure, axes):
        for axis, (title, theory) in zip(axes[0], maps, strict=True):
            winner = mechanism(theory).transpose("omega", "alpha")
            index = np.select([winner == name for name in NAMES], range(len(NAMES)), np.nan)
            axis.pcolormesh(
                theory["alpha"], theory["omega"], index, shading="nearest", vmin=-0.5,
                vmax=len(NAMES) - 0.5, cmap=ListedColormap([COLORS[name] for name in NAMES]),
                alpha=0.8,
            )  # fmt: skip
            axis.grid(False)
            for row, column in zip(*np.nonzero(untrusted_cells(theory, "omega")), strict=True):
                axis.plot(theory["alpha"][column], theory["omega"][row], "x", color=MAP_INK)
            axis.set(title=title, xlabel=ALPHA)
        axes[0, 0].set_ylabel(r"$\omega$")
        patches = [Patch(color=COLORS[name], alpha=0.8, label=name) for name in NAMES]
        figure.legend(handles=patches, loc="outside lower center", ncols=len(NAMES))
    return figure


def mechanism(theory: xr.Dataset) -> xr.DataArray:
    """Name of the mechanism with the lowest training loss in each cell of a diagram."""
    branch_name = theory["found"].sel(branch="semantic", drop=True)
    winner: xr.DataArray = xr.where(theory["winner"] == "semantic", branch_name, theory["winner"])
    return winner
