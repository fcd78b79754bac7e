"""Beyond the paper: limits with a known answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reproduction.figures.ridge_regression import plot_ridge_regression
from reproduction.item import Datasets, Item
from reproduction.known_limits import NUMBERS, paper_limits
from reproduction.rows import number
from reproduction.store import Parts
from reproduction.verdict import Row, between_engines

#: Allowed relative difference: tolerance of the solver, and distance from the limits.
SHARE = 1e-3


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Ridge regression on a grid, and the limits of the paper's model."""
    fixed = {"log2_points": sizes["log2_points"]}
    sweep = {"ridge": sizes["ridges"], "alpha": sizes["alphas"]}
    return {
        "theory-ridge": parts.study("theory-ridge", "regression", fixed, sweep),
        "theory-paper": parts.call("theory-paper", paper_limits, log2_points=sizes["paper_points"]),
    }


def draw(datasets: Datasets) -> Any:
    """V and the test error of ridge regression against alpha."""
    return plot_ridge_regression(datasets["theory-ridge"])


def compare(datasets: Datasets) -> list[Row]:
    """Compare ridge regression at its hardest point, and all limits of the paper's model."""
    ridge, paper, rows = datasets["theory-ridge"], datasets["theory-paper"], []
    point = ridge.isel(ridge=0).sel(alpha=1.0)
    at = {"alpha": 1.0, "ridge": float(point["ridge"])}
    for name in NUMBERS:
        pair = (float(point[f"{name}_exact"]), 0.0), number(point, name)
        quantity = f"ridge regression, {name}"
        rows.append(between_engines(quantity, at, *pair, "closed form", share=SHARE))
    for name in paper["limit"].values:
        row = paper.sel(limit=name)
        # For an expected zero only rounding errors are allowed.
        error = float(row["stderr"]) if float(row["expected"]) else 1e-12
        pair = (float(row["expected"]), 0.0), (float(row["found"]), error)
        origin = "closed form or one variable"
        rows.append(between_engines(str(name), {}, *pair, origin, share=SHARE))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """One closed form of ridge regression, and the largest relative error on the grid."""
    ridge = datasets["theory-ridge"]
    lines = []
    if 0.01 in ridge["ridge"].values and 1.0 in ridge["alpha"].values:
        V, error = (float(ridge[name].sel(ridge=0.01, alpha=1.0)) for name in ("V", "V_stderr"))
        lines.append(
            f"At alpha = 1 and ridge .01 the solver gives V (1 + V) = {V * (1 + V):.3f} ± "
            f"{(1 + 2 * V) * error:.3f}; the closed form is 100."
        )
    worst = {
        name: float(np.abs(ridge[name] / ridge[f"{name}_exact"] - 1).max()) for name in NUMBERS
    }
    misses = ", ".join(f"{name} {100 * value:.3f}%" for name, value in worst.items())
    lines.append(f"Largest relative error of the solver over the grid: {misses}.")
    return lines


SIZES = {
    "quick": {
        "alphas": [0.25, 0.5, 1.0, 2.0, 4.0], "ridges": [0.01, 0.1, 1.0], "log2_points": 14,
        "paper_points": 14,
    },
    "full": {
        "alphas": [0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0],
        "ridges": [0.01, 0.1, 1.0], "log2_points": 17, "paper_points": 17,
    },
}  # fmt: skip
ITEM = Item(
    "Limits with a known answer: ridge regression and others",
    compute,
    draw,
    compare,
    SIZES,
    remarks,
)
