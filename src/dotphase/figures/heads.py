"""Positional and semantic shares of the heads of a model."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LinearSegmentedColormap

from dotphase.figures.parts.style import COLORS, ink_color, new_figure, page_color


def heads(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot the positional and the semantic share of every head, a row for each layer.

    Parameters
    ----------
    dataset : Dataset
        From ``dp.heads.shares(...).dataset()``.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(50, 3, 4, 4))
    >>> figure = dp.plot.heads(dp.heads.shares(scores, scores=True).dataset(), "heads.png")
    """
    names = ("positional", "semantic")
    rows, columns = np.atleast_2d(dataset[names[0]].values).shape
    size = (max(0.68 * columns + 1, 4.6), 0.34 * rows + 1.1)
    with new_figure(path, 1, 2, size=size, sharey=True) as (figure, panels):
        for axis, name in zip(panels, names, strict=True):
            shares = np.atleast_2d(dataset[name].values)
            colors = LinearSegmentedColormap.from_list(name, [page_color(), COLORS[name]])
            axis.imshow(shares, vmin=0, vmax=1, cmap=colors, aspect="equal")
            axis.grid(False)
            for (row, column), share in np.ndenumerate(shares):
                if np.isfinite(share):
                    ink = {"color": "#FFFFFF" if share > 0.5 else ink_color(), "fontsize": 6.5}
                    text = f"{100 * max(share, 0):.0f}"
                    axis.text(column, row, text, ha="center", va="center", **ink)
            axis.set(xlabel="head", title=f"{name} share in %", xticks=range(columns))
            axis.tick_params(length=0, labelsize=7.5)
        panels[0].set(ylabel="layer", yticks=range(rows))
    return figure
