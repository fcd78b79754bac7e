"""Maps of the minima that optimizers reach from random starts."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.experiments.training.basins import basin_shares
from dotphase.figures.parts.lines import OPTIMIZER_LABELS
from dotphase.figures.parts.style import COLORS, ink_color, new_figure, page_color


def basins(runs: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot the share of runs that end in each mechanism, over alpha and the initial scale.

    Parameters
    ----------
    runs : xarray.Dataset
        From `dotphase.basins`. One row of maps for each optimizer, one column for each mechanism
        that any run reached.

    Examples
    --------
    >>> runs = dp.basins(dp.positional_semantic(), [2.0], [1.0], d=40, seeds=2, optimizers=["gd"])
    >>> figure = dp.plot.basins(runs, "basins.png")
    """
    from matplotlib.colors import LinearSegmentedColormap

    share = basin_shares(runs)["share"].transpose("optimizer", "mechanism", "scale", "alpha")
    kinds = [
        kind for kind in share["mechanism"].values.tolist() if share.sel(mechanism=kind).max() > 0
    ]
    names = share["optimizer"].values.tolist()
    alphas, scales = share["alpha"].values, share["scale"].values
    size = (0.9 + len(kinds) * max(2.1, 0.36 * len(alphas)), 0.7 + 1.75 * len(names))
    shared = {"squeeze": False, "sharex": True, "sharey": True}
    with new_figure(path, len(names), len(kinds), size=size, **shared) as (figure, axes):
        for row, name in zip(axes, names, strict=True):
            for axis, kind in zip(row, kinds, strict=True):
                colors = LinearSegmentedColormap.from_list(kind, [page_color(), COLORS[kind]])
                values = share.sel(optimizer=name, mechanism=kind).values
                axis.imshow(values, origin="lower", aspect="auto", cmap=colors, vmin=0, vmax=1)
                for (i, j), value in np.ndenumerate(values):
                    axis.text(
                        j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=7,
                        color="#FFFFFF" if value > 0.6 else ink_color(),
                    )  # fmt: skip
                axis.grid(False)
                axis.set_xticks(range(len(alphas)), [f"{value:g}" for value in alphas])
                axis.set_yticks(range(len(scales)), [f"{value:g}" for value in scales])
                axis.tick_params(length=0, labelsize=8)
            row[0].set_ylabel(f"{OPTIMIZER_LABELS.get(name, name)}\ninitial scale $s$")
        for top, bottom, kind in zip(axes[0], axes[-1], kinds, strict=True):
            top.set_title(f"{kind} (% of runs)")
            bottom.set_xlabel(r"$\alpha = n/d$")
    return figure
