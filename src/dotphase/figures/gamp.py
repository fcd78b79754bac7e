"""Message passing from several starts beside its state evolution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.style import COLOURS, house_style, save

SHOWN = (
    ("q", "$q$", "uninformed"),
    ("m", "$|m|$", "positional"),
    ("theta", r"$|\theta|$", "semantic"),
)


def plot_gamp(runs: Mapping[str, xr.Dataset], path: str | Path | None = None) -> Any:
    """Measured overlaps as points, predicted ones as lines, a panel for each start.

    Parameters
    ----------
    runs : mapping
        For each start a dataset with ``q``, ``m`` and ``theta``, each ``_measured``,
        ``_predicted`` and ``_stderr``, against ``iteration``.
    path : path, optional
        Where to write the figure.
    """
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(
            1, len(runs), figsize=(4.4 * len(runs), 3.4), layout="constrained", squeeze=False
        )
        for axis, (start, data) in zip(axes[0], runs.items(), strict=True):
            for name, symbol, kind in SHOWN:
                error = data[f"{name}_stderr"].fillna(0.0)
                axis.plot(data["iteration"], data[f"{name}_predicted"], color=COLOURS[kind], lw=1.3,
                          label=symbol)  # fmt: skip
                axis.errorbar(
                    data["iteration"], data[f"{name}_measured"], error, fmt="o", ms=2.6, lw=0.8,
                    color=COLOURS[kind],
                )  # fmt: skip
            axis.set_title(
                rf"{start} start, $d = {data.attrs['d']}$, $\alpha = {data.attrs['alpha']:g}$"
            )
            axis.set_xlabel("iteration")
            axis.set_ylim(bottom=0)
        axes[0, 0].set_ylabel("overlaps (lines: state evolution)")
        axes[0, 0].legend()
        if path is not None:
            save(figure, path)
    return figure
