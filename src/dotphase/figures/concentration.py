"""Concentration: what the runs give against d, beside the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts.lines import OVERLAPS, OWN, TRAIN_LOSS, overlap_scale, scientific
from dotphase.figures.parts.style import COLOURS, MARKERS, drawing, ink


def concentration(theory: xr.Dataset, runs: xr.Dataset, path: str | Path | None = None) -> Any:
    """Mean and standard deviation over runs against d, and how the latter falls.

    Parameters
    ----------
    theory : xarray.Dataset
        The two branches at one alpha.
    runs : xarray.Dataset
        Dimensions ``d``, ``start`` and ``seed``.

    Examples
    --------
    >>> branches = dp.curve(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> runs = runs.isel(omega=0, alpha=1, drop=True).expand_dims(d=[40])
    >>> figure = dp.plot.concentration(branches.isel(alpha=1), runs, "concentration.png")
    """
    scale, d = overlap_scale(theory), runs["d"].values
    # Panels: label, the quantity shown for each start, and its unit.
    panels = ((TRAIN_LOSS, dict.fromkeys(OWN, "train_loss"), 1.0), (OVERLAPS, OWN, scale))
    with drawing(path, 1, 3, size=(10.4, 3.3)) as (figure, axes):
        for axis, (label, names, size) in zip(axes, panels, strict=False):
            for shift, (start, name) in zip((0.97, 1.03), names.items(), strict=True):
                values = runs[name].sel(start=start) / size
                level = float(theory[name].sel(branch=start)) / size
                axis.axhline(level, color=COLOURS[start], lw=1.3)
                axis.errorbar(
                    d * shift, values.mean("seed"), values.std("seed", ddof=1), capsize=2, lw=1,
                    fmt=MARKERS[start], color=COLOURS[start], label=f"{start} start",
                )  # fmt: skip
            axis.set_ylabel(label)
        scientific(axes[0])
        spread = {
            start: runs[name].sel(start=start).std("seed", ddof=1) / scale
            for start, name in OWN.items()
        }
        for start, values in spread.items():
            symbol = r"\theta" if start == "semantic" else "m"
            axes[2].plot(
                d, values, ls="none", marker=MARKERS[start], color=COLOURS[start],
                label=rf"std of ${symbol}/\sigma^2$",
            )  # fmt: skip
        guide = float(spread["semantic"][-1]) * (d / d[-1]) ** -0.5
        axes[2].plot(d, guide, color=ink(), lw=0.9, ls="--", label=r"$d^{-1/2}$")
        axes[2].set(yscale="log", ylabel="spread over runs")
        for axis in axes:
            axis.set(xscale="log", xlabel="dimension $d$")
            axis.legend()
    return figure
