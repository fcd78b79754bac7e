"""Message passing from several starts beside its state evolution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts.style import COLOURS, drawing, page

SHOWN = (
    ("q", "$q$", "uninformed"),
    ("m", "$|m|$", "positional"),
    ("theta", r"$|\theta|$", "semantic"),
)


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
    with drawing(path, 1, len(runs), size=size, squeeze=False) as (figure, axes):
        for axis, (start, data) in zip(axes[0], runs.items(), strict=True):
            for name, symbol, kind in SHOWN:
                colour, error = COLOURS[kind], data[f"{name}_stderr"].fillna(0.0)
                predicted, measured = data[f"{name}_predicted"], data[f"{name}_measured"]
                # Few markers, below the lines: every point would hide them.
                every = slice(None, None, max(1, data.sizes["iteration"] // 25))
                axis.errorbar(
                    data["iteration"][every], measured[every], error[every], fmt="o", ms=3.6,
                    lw=0.8, color=colour, mfc=page(), zorder=1,
                )  # fmt: skip
                axis.plot(data["iteration"], predicted, color=colour, lw=1.3, label=symbol)
            d, alpha = data.attrs["d"], data.attrs["alpha"]
            axis.set_title(rf"{start} start, $d = {d}$, $\alpha = {alpha:g}$")
            # The first iteration overshoots by far: the axis is for what follows.
            later = [data[f"{name}_predicted"][2:] for name, _, _ in SHOWN]
            top = max((float(part.max()) for part in later if part.size), default=1.0)
            axis.set(xlabel="iteration", ylim=(0, 1.3 * top if top > 0 else None))
        axes[0, 0].set_ylabel("overlaps (lines: state evolution,\npoints: measured)")
        axes[0, 0].legend()
    return figure
