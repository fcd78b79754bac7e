"""Attention matrices of teacher and student side by side."""

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts.style import new_figure

#: Largest matrix whose cells show their numbers.
MAX_NUMBERED = 6


def attention(matrices: xr.DataArray, path: str | Path | None = None) -> Any:
    """Plot attention matrices as maps, with their numbers if there are few tokens.

    Parameters
    ----------
    matrices : xarray.DataArray
        From `dotphase.attention`, over ``who``, ``token`` and ``on``.

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> figure = dp.plot.attention(dp.attention(solution), "attention.png")
    """
    names, length = matrices["who"].values.tolist(), matrices.sizes["token"]
    top = float(matrices.max())
    size = (2.4 * len(names) + 0.6, 2.6)
    with new_figure(path, 1, len(names), size=size, squeeze=False) as (figure, axes):
        for axis, name in zip(axes.flat, names, strict=True):
            weights = matrices.sel(who=name).values
            image = axis.imshow(weights, vmin=0, vmax=top, cmap="viridis")
            axis.grid(False)
            ticks = range(length)
            axis.set_xticks(ticks, [str(index + 1) for index in ticks])
            axis.set_yticks(ticks, [str(index + 1) for index in ticks])
            axis.set(title=name, xlabel="on token", ylabel="attention of token")
            for row, column in ((i, j) for i in ticks for j in ticks if length <= MAX_NUMBERED):
                value = weights[row, column]
                color = "black" if value > 0.6 * top else "white"
                axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=color)
        figure.colorbar(image, ax=list(axes.flat), shrink=0.8, label="weight")
    return figure
