"""Message passing from several starts beside its state evolution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts.lines import AMP_FIELDS, AMP_OVERLAPS, plot_message_passing
from dotphase.figures.parts.style import new_figure


def gamp(runs: Mapping[str, xr.Dataset], path: str | Path | None = None) -> Any:
    """Measured overlaps as points, predicted ones as lines, a panel for each start.

    Parameters
    ----------
    runs : mapping
        For each start a dataset with ``q``, ``m`` and ``theta``, each ``_measured``,
        ``_predicted`` and ``_stderr``, against ``iteration``.

    Examples
    --------
    >>> import xarray as xr
    >>> passing = xr.Dataset(coords={"iteration": [0, 1]}, attrs={"d": 100, "alpha": 2.0})
    >>> for name in ("q", "m", "theta"):
    ...     for part in ("measured", "predicted", "stderr"):
    ...         passing[f"{name}_{part}"] = ("iteration", [0.1, 0.2])
    >>> figure = dp.plot.gamp({"semantic": passing}, "gamp.png")
    """
    size = (4.4 * len(runs), 3.4)
    with new_figure(path, 1, len(runs), size=size, squeeze=False) as (figure, axes):
        for axis, (start, data) in zip(axes[0], runs.items(), strict=True):
            shown = {name: [data[f"{name}_{part}"] for part in AMP_FIELDS] for name in AMP_OVERLAPS}
            plot_message_passing(axis, data["iteration"], shown)
            d, alpha = data.attrs["d"], data.attrs["alpha"]
            axis.set_title(rf"{start} start, $d = {d}$, $\alpha = {alpha:g}$")
        axes[0, 0].set_ylabel("overlaps (lines: state evolution,\npoints: measured)")
        axes[0, 0].legend()
    return figure
