"""Mechanisms reached from random starts against alpha, for several d."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.experiments.training.basins import basin_shares
from dotphase.figures.parts.lines import ALPHA
from dotphase.figures.parts.style import new_figure

#: Okabe-Ito colors and markers of the datasets.
SHADES = ("#7F7F7F", "#E69F00", "#009E73", "#0072B2", "#CC79A7")
MARKERS = ("x", "o", "s", "D", "^")
#: Rows of the figure.
KINDS = ("semantic", "positional", "uninformed")


def outcomes(datasets: Mapping[str, xr.Dataset], path: str | Path | None = None) -> Any:
    """Plot the shares of mechanisms, a row for each mechanism and a column for each initial scale.

    Parameters
    ----------
    datasets : mapping
        Datasets by label, from `dotphase.analysis.outcomes`, or from `dotphase.basins` with one
        optimizer.

    Examples
    --------
    >>> small = {"d": 200, "seeds": 2, "steps": 15}
    >>> runs = dp.analysis.outcomes(dp.positional_semantic(), [2.0], [0.1], **small)
    >>> figure = dp.plot.outcomes({"$d = 200$": runs}, "outcomes.png")
    """
    shares = {label: basin_shares(_drop_optimizer(runs)) for label, runs in datasets.items()}
    scales = next(iter(shares.values()))["scale"].values
    size = (0.8 + 3.6 * len(scales), 0.7 + 1.9 * len(KINDS))
    shared = {"sharex": True, "sharey": True, "squeeze": False}
    with new_figure(path, len(KINDS), len(scales), size=size, **shared) as (figure, axes):
        styles = zip(SHADES, MARKERS, shares.items(), strict=False)
        for number, (color, marker, (label, share)) in enumerate(styles):
            for row, kind in zip(axes, KINDS, strict=True):
                for axis, scale in zip(row, scales, strict=True):
                    curve = share.sel(mechanism=kind, scale=scale)
                    # Shifted, so that points do not hide each other.
                    axis.errorbar(
                        curve["alpha"] + 0.04 * number, curve["share"], curve["stderr"],
                        color=color, marker=marker, ms=5, lw=1.2, elinewidth=0.8,
                        label=label,
                    )  # fmt: skip
        for axis, scale in zip(axes[0], scales, strict=True):
            axis.set_title(f"initial scale $s = {scale:g}$")
        for axis in axes[-1]:
            axis.set_xlabel(ALPHA)
        for row, kind in zip(axes, KINDS, strict=True):
            row[0].set(ylabel=f"share of {kind} ends", ylim=(-0.04, 1.04))
        axes[0, 0].legend()
    return figure


def _drop_optimizer(runs: xr.Dataset) -> xr.Dataset:
    return runs.isel(optimizer=0) if "optimizer" in runs.dims else runs
