"""Maps of which minimum an optimiser finds from random starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import COLOURS, house_style, ink, page, save

TITLES = {"gd": "gradient descent", "adam": "Adam", "sgd": "SGD", "lbfgs": "L-BFGS"}


def plot_basins(shares: xr.Dataset, path: str | Path | None = None) -> Any:
    """Shares of runs by what they found, over alpha and the initial scale.

    Parameters
    ----------
    shares : xarray.Dataset
        From `dotphase.experiments.basins.basin_shares`: one row of maps for each optimiser,
        one column for each mechanism that was found by any run.
    path : path, optional
        Where to write the figure.
    """
    from matplotlib.colors import LinearSegmentedColormap

    share = shares["share"].transpose("optimizer", "found", "scale", "alpha")
    kinds = [kind for kind in share["found"].values if float(share.sel(found=kind).max()) > 0]
    names = list(share["optimizer"].values)
    alphas, scales = share["alpha"].values, share["scale"].values
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(
            len(names), len(kinds), squeeze=False, sharex=True, sharey=True, layout="constrained",
            figsize=(0.9 + len(kinds) * max(2.1, 0.36 * len(alphas)), 0.7 + 1.75 * len(names)),
        )  # fmt: skip
        for row, name in zip(axes, names, strict=True):
            for axis, kind in zip(row, kinds, strict=True):
                colours = LinearSegmentedColormap.from_list(str(kind), [page(), COLOURS[str(kind)]])
                values = share.sel(optimizer=name, found=kind).values
                axis.imshow(values, origin="lower", aspect="auto", cmap=colours, vmin=0, vmax=1)
                for (i, j), value in np.ndenumerate(values):
                    colour = "#FFFFFF" if value > 0.6 else ink()
                    axis.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=7,
                              color=colour)  # fmt: skip
                axis.grid(False)
                axis.set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
                axis.set_yticks(range(len(scales)), [f"{scale:g}" for scale in scales])
                axis.tick_params(length=0, labelsize=8)
            row[0].set_ylabel(f"{TITLES.get(str(name), name)}\ninitial scale $s$")
        for axis, kind in zip(axes[0], kinds, strict=True):
            axis.set_title(f"{kind} (% of runs)")
        for axis in axes[-1]:
            axis.set_xlabel(r"$\alpha = n/d$")
        if path is not None:
            save(figure, path)
        pyplot.close(figure)
    return figure
