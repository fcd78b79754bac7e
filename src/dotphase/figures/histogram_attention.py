"""Attention matrices of the counting transformers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dotphase.figures.parts.style import COLORS, ink_color, new_figure
from dotphase.histogram import Network, attention_maps

#: Default sequences.
SEQUENCES = ("BBCCDDBBBB", "LMDMMMAHHB", "ONMLKJIHGF")
#: Smallest weight that is written into its cell.
MIN_NUMBERED = 0.005


def histogram_attention(
    networks: Mapping[str, Network],
    sequences: Sequence[str] = SEQUENCES,
    path: str | Path | None = None,
) -> Any:
    """Plot attention matrices: a row per network, a column per sequence.

    Parameters
    ----------
    networks : mapping
        Networks by label; names of mechanisms have their color.
    sequences : sequence of str
        Sequences such as BBCCDDBBBB.

    Examples
    --------
    >>> networks = {"semantic": dp.histogram.shipped("semantic")}
    >>> figure = dp.plot.histogram_attention(networks, path="attention.png")
    """
    maps = attention_maps(list(networks.values()), sequences)
    length = maps.shape[-1]
    rows, columns = maps.shape[:2]
    size = (3.3 * columns + 0.8, 3.0 * rows + 0.3)
    with new_figure(path, rows, columns, size=size, squeeze=False, sharex="col") as (figure, grid):
        for row, name in enumerate(networks):
            for column, text in enumerate(sequences):
                axes = grid[row, column]
                image = axes.imshow(maps[row, column], vmin=0, vmax=maps.max(), cmap="viridis")
                axes.grid(False)
                _write_percentages(axes, maps[row, column], maps.max())
                axes.set_xticks(range(length), list(text))
                axes.set_yticks(range(length), list(text))
                axes.tick_params(length=0, labelsize=7.5)
                axes.spines[:].set_visible(False)
                if row == 0:
                    axes.set_title(text)
                if column == 0:
                    axes.set_ylabel(name, color=COLORS.get(name, ink_color()), fontweight="bold")
        bar = figure.colorbar(image, ax=grid, shrink=0.7, pad=0.02)
        bar.set_label("weight on the token of the column")
        bar.outline.set_visible(False)
    return figure


def _write_percentages(axes: Any, weights: Any, top: float) -> None:
    """Write the weights in percent into their cells, in a color that contrasts with the cell."""
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= MIN_NUMBERED:
            color = "#FFFFFF" if weight < 0.6 * top else "#000000"
            text = f"{100 * weight:.0f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=5.5, color=color)
