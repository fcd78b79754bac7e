"""A student of rank two on the teacher of rank one: theory and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import diagram, plot, positional_semantic
from dotphase.plot.style import GAIN_COLORS, GAIN_MEANING, Panel
from reproduction.item import Datasets, Item
from reproduction.released.grids import MORE_ALPHAS, RANK_TWO, trained
from reproduction.rows import finite_size, usable
from reproduction.store import Parts
from reproduction.verdict import Row, between_engines

INFORMED = ("mixed", "semantic")
SIGMA = 0.5
#: Smallest alpha at which random starts reach the lowest minimum reliably.
FOUND = 3.0


def _family(omega: float) -> Any:
    return positional_semantic(omega=omega, sigma=SIGMA, student_rank=2)


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """The branches on the grid, and students trained from random starts, as released."""
    config = {"alphas": sizes["alphas"], "values": sizes["omegas"], "informed": INFORMED}
    theory = parts.call("theory", diagram, _family, log2_points=sizes["log2_points"], **config)
    return {"theory": theory, "runs": trained(parts, sizes["grid"]).isel(start=0)}


def draw(datasets: Datasets) -> Any:
    """Both overlaps and the gain in test error, up to alpha = 4."""
    theory, runs = datasets["theory"], datasets["runs"]
    lowest, scale = theory.sel(branch="semantic"), SIGMA**2
    gain = 1e3 * (runs["linear_test_error"] - runs["test_error"]).mean("seed")
    label = r"$\epsilon_{\rm lin} - \epsilon_g$  $[10^{-3}]$"
    columns = [
        Panel(r"$|\theta|/\sigma^2$", "viridis", lowest["theta"] / scale,
              runs["theta"].mean("seed") / scale, centered=False),
        Panel(r"$|m|$", "viridis", lowest["m"], runs["m"].mean("seed"), centered=False),
        Panel(label, GAIN_COLORS, 1e3 * theory["test_gain"], gain, meaning=GAIN_MEANING),
    ]  # fmt: skip
    return plot.map_columns(columns, theory, runs, theory)


def compare(datasets: Datasets) -> list[Row]:
    """Compare overlaps of the lowest minimum with the run of lowest loss, averaged over cells.

    Only cells with so many sentences that random starts reach the minimum count.
    """
    theory = datasets["theory"].sel(branch="semantic").sel(alpha=slice(FOUND, None))
    runs = datasets["runs"]
    is_usable = usable(theory)
    lowest_runs = runs.isel(seed=runs["train_loss"].argmin("seed"))
    rows = []
    for name in ("theta", "m"):
        predicted = theory[name].where(is_usable)
        trained_values = lowest_runs[name].sel(
            alpha=theory["alpha"], omega=theory["omega"], method="nearest"
        )
        trained_values = trained_values.assign_coords(alpha=theory["alpha"], omega=theory["omega"])
        gap = (trained_values.where(is_usable) - predicted).values
        gap = gap[np.isfinite(gap)]
        mean = float(predicted.mean())
        # Cells are independent data sets: their scatter gives the error of the mean.
        error = float(np.std(gap, ddof=1) / np.sqrt(gap.size)) if gap.size > 1 else np.nan
        quantity, at = f"{name} of the lowest minimum, mean over cells", {"cells": int(gap.size)}
        pair = (mean, 0.0), (mean + float(np.mean(gap)), error)
        rows.append(between_engines(quantity, at, *pair, share=finite_size(runs)))
    return rows


def _has_both_overlaps(runs: xr.Dataset) -> xr.DataArray:
    """True for runs that ended with both overlaps."""
    mechanisms: xr.DataArray = (runs["theta"] > 0.02) & (runs["m"] > 0.05)
    return mechanisms


def remarks(datasets: Datasets) -> list[str]:
    """Cells with a mixed minimum, and the share of runs that end with both overlaps."""
    theory, runs = datasets["theory"], datasets["runs"]
    mechanisms = theory["found"].sel(branch="semantic")
    exists = theory["on_branch"].astype(bool).sel(branch="semantic")
    mixed = (mechanisms == "mixed") & exists
    wins = mixed & (theory["winner"] == "semantic")
    total = theory.sizes["alpha"] * theory.sizes["omega"]
    lines = [
        "The mixed minimum (one direction semantic, one positional) exists in "
        f"{int(mixed.sum())} of {total} cells of the theory and has the lowest training loss in "
        f"{int(wins.sum())} of these: two directions can learn both mechanisms.",
    ]
    first_alphas = []
    for omega in theory["omega"].values:
        row = wins.sel(omega=omega)
        if bool(row.any()):
            first_alphas.append(f"{omega:g}: {float(theory['alpha'].values[row.values][0]):g}")
    lines.append(
        "First alpha of the grid with a mixed minimum, by omega: " + "; ".join(first_alphas) + "."
    )
    mixed_runs = _has_both_overlaps(runs)
    large_alphas = mixed_runs.sel(alpha=slice(2.0, None))
    lines.append(
        f"Trained at d = {runs.attrs['d']} from random starts, {runs.sizes['seed']} data sets a "
        f"cell: {100 * float(mixed_runs.mean()):.0f}% of all runs end with both overlaps (theta "
        f"above .02, m above .05), {100 * float(large_alphas.mean()):.0f}% of those at "
        "alpha of 2 and more."
    )
    return lines


SIZES = {
    "quick": {
        "alphas": [1.005, 2.0, 3.0, 4.0], "omegas": [0.1, 0.3, 0.5], "log2_points": 12,
        "grid": RANK_TWO["quick"],
    },
    "full": {
        "alphas": list(MORE_ALPHAS[3::3]), "omegas": [0.02, 0.1, 0.2, 0.3, 0.4, 0.5],
        "log2_points": 14, "grid": RANK_TWO["full"],
    },
}  # fmt: skip
ITEM = Item("A student of rank two", compute, draw, compare, SIZES, remarks)
