"""Phase diagrams as maps with the critical lines on top."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts.lines import ALPHA, LOSS_GAP, SYMBOLS
from dotphase.figures.parts.maps import critical_lines, draw_map, hatch, largest, missing_entry
from dotphase.figures.parts.style import drawing, ink

#: What is shown, its label and its colours.
PANELS = (
    ("loss_difference", LOSS_GAP, "PuOr"),
    ("test_gain", r"$\epsilon_{\rm lin} - \epsilon_g$ of the lowest minimum", "RdBu"),
)


def diagram(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a dataset of `dotphase.diagram`.

    Left the difference of the training losses, right the gain in test error over the linear
    layer, both in units of 1e-3; alpha_c and alpha_l as lines; hatched where the theory of the
    winning branch is not to be trusted.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.diagram`.

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> figure = dp.plot.diagram(cells, "diagram.png")
    """
    parameter = str(dataset.attrs["parameter"])
    with drawing(path, 1, 2, size=(9.6, 3.9), sharex=True, sharey=True) as (figure, axes):
        for axis, (name, title, colours) in zip(axes, PANELS, strict=True):
            field = 1e3 * dataset[name]
            limit = largest(field)
            mesh = draw_map(axis, field, parameter, colours, -limit, limit)
            figure.colorbar(mesh, ax=axis, label=title + r"  $[10^{-3}]$")
            hatch(axis, dataset, parameter)
            critical_lines(axis, dataset, parameter, ink())
            axis.set_xlabel(ALPHA)
        missing_entry(axes[0], mec="none")
        axes[0].set_ylabel(f"${SYMBOLS.get(parameter, parameter)}$")
        axes[0].legend(loc="upper left")
    return figure
