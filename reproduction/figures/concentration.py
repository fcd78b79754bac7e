"""Concentration: results of runs against d, with the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.plot.style import (
    COLORS,
    MARKERS,
    ORDER_PARAMETERS,
    OVERLAP_LABELS,
    OVERLAPS,
    TRAIN_LOSS,
    format_dimension_axis,
    ink_color,
    new_figure,
    overlap_scale,
    plot_against_dimension,
    use_scientific_ticks,
)


def plot_concentration(theory: xr.Dataset, runs: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw mean and standard deviation over runs against d.

    Parameters
    ----------
    theory : xarray.Dataset
        The two branches at one alpha.
    runs : xarray.Dataset
        Dimensions ``d``, ``start`` and ``seed``.
    """
    scale, d = overlap_scale(theory), runs["d"].values
    with new_figure(path, 1, 3, size=(10.4, 3.6)) as (figure, (loss, overlap, spread)):
        plot_against_dimension(loss, theory, runs, dict.fromkeys(ORDER_PARAMETERS, "train_loss"))
        plot_against_dimension(overlap, theory, runs, ORDER_PARAMETERS, scale)
        loss.set_ylabel(TRAIN_LOSS)
        overlap.set_ylabel(OVERLAPS)
        use_scientific_ticks(loss)
        figure.legend(*loss.get_legend_handles_labels(), loc="outside upper left", ncols=4)
        for start, name in ORDER_PARAMETERS.items():
            values, error = spread_over_runs(runs[name].sel(start=start) / scale)
            spread.errorbar(
                d, values, error, capsize=2, lw=1, fmt=MARKERS[start], color=COLORS[start],
                label=f"of {OVERLAP_LABELS[name]}",
            )  # fmt: skip
            if start == "semantic":
                guide = float(values[-1]) * (d / d[-1]) ** -0.5
                spread.plot(d, guide, color=ink_color(), lw=0.9, ls="--", label=r"$d^{-1/2}$")
        format_dimension_axis(spread, d)
        spread.set(yscale="log", ylabel="spread over runs")
        spread.legend()
    return figure


def spread_over_runs(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Standard deviation over seeds and its standard error, from the fourth moment.

    ``var(s) = (mu_4 - s^4)/(4 n s^2)``: runs that leave their minimum make it large.
    """
    spread = values.std("seed", ddof=1)
    fourth = ((values - values.mean("seed")) ** 4).mean("seed")
    error = (abs(fourth - spread**4) / values.sizes["seed"]) ** 0.5 / (2 * spread)
    return spread, error
