"""Concentration with the dimension at alpha = 1.5: finite d against the limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import curve, positional_semantic
from reproduction.figures.concentration import plot_concentration
from reproduction.figures.scatter_by_dimension import plot_scatter_by_dimension
from reproduction.item import Datasets, Item
from reproduction.released.grids import scaling_grids, trained
from reproduction.rows import LOSSES, OVERLAP, number
from reproduction.store import Parts
from reproduction.verdict import Row, between_engines

OMEGA, ALPHA = 0.3, 1.5
#: Number of the largest dimensions in the fits of means and of spreads.
FITTED, SPREADS = 4, 7
QUANTITIES = ("train_loss", "test_error", "theta", "m")


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Both branches in the limit, and runs at each dimension."""
    grids = scaling_grids(sizes["scale"])
    rows = [
        trained(parts, grid)[list(QUANTITIES)].isel(alpha=0, omega=0, drop=True)
        for grid in grids.values()
    ]
    config = {"alphas": [ALPHA], "rtol": sizes["rtol"], "max_log2_points": 18}
    theory = parts.call("theory", curve, positional_semantic(omega=OMEGA), **config)
    runs = xr.concat(rows, xr.Variable("d", list(grids)), combine_attrs="drop_conflicts")
    return {"theory": theory.isel(alpha=0), "runs": runs}


def draw(datasets: Datasets) -> Any:
    """Means with standard deviations against d, theory as lines, and the spread itself."""
    pair = datasets["theory"], datasets["runs"]
    return {"": plot_concentration(*pair), "scatter": plot_scatter_by_dimension(*pair)}


def spread_exponent(runs: xr.Dataset, start: str, name: str) -> tuple[float, float]:
    """Exponent with which the spread over runs falls with d, and its error from the fit."""
    values = runs[name].sel(start=start).isel(d=slice(-SPREADS, None))
    x, y = np.log(values["d"].values), np.log(values.std("seed", ddof=1).values)
    # The relative error of the spread of n runs is 1/sqrt(2 n - 2).
    error = 1 / np.sqrt(2 * values.sizes["seed"] - 2)
    slope = np.polyfit(x, y, 1)[0]
    return float(slope), float(error / np.sqrt(np.sum((x - x.mean()) ** 2)))


def limit(runs: xr.Dataset, start: str, name: str) -> tuple[float, float]:
    """Value for d to infinity and its error: a fit of ``a + b/d`` to the means at the largest d.

    The weights assume a spread ``c/sqrt(d)`` with one c for all d. Spreads of single dimensions
    come from a few runs each and are too uncertain.
    """
    values = runs[name].sel(start=start).isel(d=slice(-FITTED, None))
    d, count = values["d"].values, values.sizes["seed"]
    mean, variance = values.mean("seed").values, values.var("seed", ddof=1).values
    weight = np.sqrt(d * count / np.mean(d * variance))
    design = np.stack([np.ones(d.size), 1 / d], axis=1) * weight[:, None]
    covariance = np.linalg.inv(design.T @ design)
    value = covariance @ design.T @ (mean * weight)
    return float(value[0]), float(np.sqrt(covariance[0, 0]))


def compare(datasets: Datasets) -> list[Row]:
    """Runs extrapolated to large d against the theory, and the spread against d^(-1/2)."""
    theory, runs = datasets["theory"], datasets["runs"]
    rows = []
    for branch, overlap in OVERLAP.items():
        point = theory.sel(branch=branch)
        at = {"branch": branch, "d": "to infinity"}
        for name in (*LOSSES, overlap):
            expected = limit(runs, branch, name)
            rows.append(between_engines(name, at, number(point, name), expected))
        name, at = f"exponent of the spread of {overlap} in d", {"branch": branch}
        expected = spread_exponent(runs, branch, overlap)
        rows.append(
            between_engines(
                name, at, (-0.5, 0.0), expected, "central limit", share=0.0, tolerance=0.1
            )
        )
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Sizes, and where the spread is from."""
    runs = datasets["runs"]
    dims = ", ".join(str(d) for d in runs["d"].values)
    ends = runs.sel(start="positional")
    escaped = (ends["theta"] > ends["m"]).mean("seed")
    return [
        f"d = {dims}, {runs.sizes['seed']} data sets each, both starts on the same data.",
        f"Means at the {FITTED} largest d are fitted by a + b/d; a is compared with the theory.",
        "Bars of the spread are its own standard error, from the fourth moment. At small d some "
        "runs from the positional start end semantic and make it large. Their share by d: "
        + "; ".join(f"{d}: {float(escaped.sel(d=d)):.2f}" for d in runs["d"].values)
        + ".",
    ]


SIZES = {
    "quick": {"scale": "quick", "rtol": 5e-3},
    "full": {"scale": "full", "rtol": 2e-3},
}
ITEM = Item("Concentration with d at alpha = 1.5", compute, draw, compare, SIZES, remarks)
