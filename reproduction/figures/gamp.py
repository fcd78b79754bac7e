"""Message passing from several starts with its state evolution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase import positional_semantic
from dotphase.plot.style import AMP_FIELDS, AMP_OVERLAPS, new_figure, plot_message_passing

#: Unit of the overlaps: sigma^2 of token 1.
UNIT = float(positional_semantic().rho[0])


def plot_gamp(runs: Mapping[str, xr.Dataset], path: str | Path | None = None) -> Any:
    """Measured overlaps as points, predicted ones as lines, a panel for each start.

    Parameters
    ----------
    runs : mapping
        For each start a dataset with ``q``, ``m`` and ``theta``, each ``_measured``,
        ``_predicted`` and ``_stderr``, against ``iteration``.
    """
    size = (4.4 * len(runs), 3.4)
    with new_figure(path, 1, len(runs), size=size, squeeze=False) as (figure, axes):
        for axis, (start, data) in zip(axes[0], runs.items(), strict=True):
            overlaps = {
                name: [data[f"{name}_{field}"] for field in AMP_FIELDS] for name in AMP_OVERLAPS
            }
            plot_message_passing(axis, data["iteration"], overlaps, UNIT)
            d, alpha = data.attrs["d"], data.attrs["alpha"]
            axis.set_title(rf"{start} start, $d = {d}$, $\alpha = {alpha:g}$")
        axes[0, 0].set_ylabel("overlaps (lines: state evolution,\npoints: measured)")
        axes[0, 0].legend()
    return figure
