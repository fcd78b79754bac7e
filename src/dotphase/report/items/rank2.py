"""A student of rank two on the teacher of rank one: theory and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dotphase import plot
from dotphase.experiments.diagram import diagram
from dotphase.figures.parts.maps import Panel, gain_panel
from dotphase.model.paper import positional_semantic
from dotphase.report.item import Datasets, Item, evenly
from dotphase.report.rows import finite_size, usable
from dotphase.report.store import Parts
from dotphase.report.sweeps import training_grid
from dotphase.report.verdict import Row, between_engines

INFORMED = ("mixed", "semantic")
SIGMA = 0.5


def _family(omega: float) -> Any:
    return positional_semantic(omega=omega, sigma=SIGMA, student_rank=2)


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """The branches on the grid, and students trained from a semantic and a positional start."""
    trained = sizes["trained_alphas"], sizes["trained_omegas"]
    runs = training_grid(parts, "runs", sizes, *trained, student_rank=2)
    asked = {"alphas": sizes["alphas"], "values": sizes["omegas"], "informed": INFORMED}
    theory = parts.call("theory", diagram, _family, log2_points=sizes["log2_points"], **asked)
    return {"theory": theory, "runs": runs}


def draw(datasets: Datasets) -> Any:
    """The semantic overlap of the lowest minimum, and the gain in test error."""
    theory, runs = datasets["theory"], datasets["runs"]
    scale = SIGMA**2
    panel = Panel(
        r"$\theta/\sigma^2$ of the lowest minimum",
        "viridis",
        theory["theta"].sel(branch="semantic") / scale,
        runs["theta"].sel(start="semantic").mean("seed") / scale,
        centred=False,
    )
    return plot.panels([panel, gain_panel(theory, runs)], theory, runs, theory)


def compare(datasets: Datasets) -> list[Row]:
    """Overlaps of the lowest minimum, averaged over the cells where the theory is trusted."""
    theory, runs = datasets["theory"].sel(branch="semantic"), datasets["runs"]
    there = usable(theory)
    rows = []
    for name in ("theta", "m"):
        predicted = theory[name].where(there)
        trained = runs[name].sel(start="semantic").mean("seed")
        trained = trained.interp(alpha=theory["alpha"], omega=theory["omega"]).where(there)
        gap = (trained - predicted).values
        gap = gap[np.isfinite(gap)]
        mean = float(predicted.mean())
        # Cells are independent data sets: their scatter gives the error of the mean.
        error = float(np.std(gap, ddof=1) / np.sqrt(gap.size))
        quantity, at = f"{name} of the lowest minimum, mean over cells", {"cells": int(gap.size)}
        pair = (mean, 0.0), (mean + float(np.mean(gap)), error)
        rows.append(between_engines(quantity, at, *pair, share=finite_size(runs)))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Where the mixed mechanism exists and wins, and that training finds it from anywhere."""
    theory, runs = datasets["theory"], datasets["runs"]
    found = theory["found"].sel(branch="semantic")
    there = theory["on_branch"].astype(bool).sel(branch="semantic")
    mixed = (found == "mixed") & there
    wins = mixed & (theory["winner"] == "semantic")
    total = theory.sizes["alpha"] * theory.sizes["omega"]
    lines = [
        "The mixed minimum (one direction semantic, one positional) exists in "
        f"{int(mixed.sum())} of {total} cells of the theory and has the lowest training loss in "
        f"{int(wins.sum())} of these: with two directions there is nothing to choose between.",
    ]
    places = []
    for omega in theory["omega"].values:
        row = wins.sel(omega=omega)
        if bool(row.any()):
            places.append(f"{omega:g}: {float(theory['alpha'].values[row.values][0]):g}")
    lines.append(
        "First alpha of the grid with a mixed minimum, by omega: " + "; ".join(places) + "."
    )
    both = (runs["theta"] > 0.02) & (runs["m"] > 0.05)
    shares = {start: float(both.sel(start=start).mean()) for start in ("semantic", "positional")}
    lines.append(
        f"Trained at d = {runs.attrs['d']}: {100 * shares['semantic']:.0f}% of the runs from the "
        f"semantic and {100 * shares['positional']:.0f}% of those from the positional start end "
        "with both overlaps (theta above .02, m above .05)."
    )
    return lines


SIZES = {
    "quick": {
        "alphas": [0.5, 1.0, 1.5, 2.0], "omegas": [0.1, 0.3, 0.5], "log2_points": 12, "d": 100,
        "seeds": 2, "trained_alphas": [0.5, 1.0, 1.5, 2.0], "trained_omegas": [0.1, 0.3, 0.5],
    },
    "full": {
        "alphas": evenly(0.2, 2.0, 10),
        "omegas": evenly(0, 0.5, 6), "log2_points": 14, "d": 1000,
        "seeds": 2, "trained_alphas": evenly(0.2, 2.0, 16),
        "trained_omegas": evenly(0, 0.5, 11),
    },
}  # fmt: skip
ITEM = Item("A student of rank two", compute, draw, compare, SIZES, remarks)
