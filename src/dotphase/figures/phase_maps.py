"""Phase diagrams over alpha and omega: theory above, training below."""

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.experiments.dynamics.filled_diagram import filled_difference
from dotphase.figures.map_columns import map_columns
from dotphase.figures.parts.lines import LOSS_GAP, loss_gap
from dotphase.figures.parts.maps import LOSS_GAP_COLORS, LOSS_GAP_MEANING, Panel, gain_panel


def phase_maps(
    theory: xr.Dataset,
    runs: xr.Dataset,
    lines: xr.Dataset | None = None,
    path: str | Path | None = None,
) -> Any:
    """Plot the loss difference and the gain over the linear layer, in theory and trained.

    Parameters
    ----------
    theory, runs, lines
        As for `map_columns`.

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> figure = dp.plot.phase_maps(cells, runs, path="phase_maps.png")
    """
    difference = loss_gap(runs["train_loss"], "start").mean("seed")
    label = LOSS_GAP + r"  $[10^{-3}]$"
    gap, reached = filled_difference(theory)
    columns = [
        Panel(
            label, LOSS_GAP_COLORS, 1e3 * gap, 1e3 * difference, comparison=True, reached=reached,
            meaning=LOSS_GAP_MEANING,
        ),
        gain_panel(theory, runs),
    ]  # fmt: skip
    return map_columns(columns, theory, runs, lines, path)
