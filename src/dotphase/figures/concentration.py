"""Concentration: what the runs give against d, beside the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.style import COLOURS, MARKERS, house_style, ink, save

#: Panels: label, and for each start the quantity shown.
PANELS = (
    (r"training loss $\epsilon_t$", {"semantic": "train_loss", "positional": "train_loss"}),
    (r"overlaps $\theta/\sigma^2$ and $m/\sigma^2$", {"semantic": "theta", "positional": "m"}),
)


def plot_concentration(theory: xr.Dataset, runs: xr.Dataset, path: str | Path | None = None) -> Any:
    """Mean and standard deviation over runs against d, and how the latter falls.

    Parameters
    ----------
    theory : xarray.Dataset
        The two branches at one alpha.
    runs : xarray.Dataset
        Dimensions ``d``, ``start`` and ``seed``.
    path : path, optional
        Where to write the figure.
    """
    scale = float(np.atleast_1d(theory.attrs["sigma"])[0]) ** 2
    d = runs["d"].values
    with house_style() as pyplot:
        figure, axes = pyplot.subplots(1, 3, figsize=(10.4, 3.3), layout="constrained")
        for axis, (label, names) in zip(axes, PANELS, strict=False):
            for shift, (start, name) in zip((0.97, 1.03), names.items(), strict=True):
                size = scale if name in ("theta", "m") else 1.0
                values = runs[name].sel(start=start) / size
                axis.axhline(
                    float(theory[name].sel(branch=start)) / size, color=COLOURS[start], lw=1.3
                )
                axis.errorbar(
                    d * shift, values.mean("seed"), values.std("seed", ddof=1), capsize=2, lw=1,
                    fmt=MARKERS[start], color=COLOURS[start], label=f"{start} start",
                )  # fmt: skip
            axis.set_ylabel(label)
        axes[0].ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        for start, name in PANELS[1][1].items():
            spread = runs[name].sel(start=start).std("seed", ddof=1) / scale
            symbol = r"\theta" if name == "theta" else "m"
            axes[2].plot(
                d, spread, ls="none", marker=MARKERS[start], color=COLOURS[start],
                label=rf"std of ${symbol}/\sigma^2$",
            )  # fmt: skip
        first = float((runs["theta"].sel(start="semantic").std("seed", ddof=1) / scale)[-1])
        axes[2].plot(
            d, first * (d / d[-1]) ** -0.5, color=ink(), lw=0.9, ls="--", label=r"$d^{-1/2}$"
        )
        axes[2].set_yscale("log")
        axes[2].set_ylabel("spread over runs")
        for axis in axes:
            axis.set_xscale("log")
            axis.set_xlabel("dimension $d$")
            axis.legend()
        if path is not None:
            save(figure, path)
    return figure
