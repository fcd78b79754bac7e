"""Message passing on one data set against its state evolution, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase import amp, positional_semantic
from reproduction.figures.gamp import plot_gamp
from reproduction.item import Datasets, Item
from reproduction.rows import OVERLAP
from reproduction.store import RANDOM_NORM, Parts
from reproduction.verdict import Row, between_engines, within

OMEGA, ALPHA = 0.3, 2.0
OVERLAPS = ("q", "m", "theta")


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Measured and predicted overlaps at every iteration, from both starts."""
    return {start: parts.call(start, partial(_run, start), **sizes) for start in OVERLAP}


def _run(start: str, d: int, seeds: int, iterations: int) -> xr.Dataset:
    result = amp(
        positional_semantic(omega=OMEGA), ALPHA, d, seeds=seeds, start=start, iterations=iterations,
        held_out=2, **RANDOM_NORM,
    )  # fmt: skip
    variables = [
        f"{name}_{suffix}" for name in OVERLAPS for suffix in ("measured", "predicted", "stderr")
    ]
    dataset = result.dataset()[variables].drop_vars("seed", errors="ignore")
    dataset = dataset.isel(iteration=dataset["q_predicted"].notnull().values)
    gradients = [run.gradient_norm / np.sqrt(d) for run in result.runs]
    overlaps = [run.overlap_with_trained for run in result.runs]
    dataset["gradient"] = ("seed", gradients)
    dataset["overlap_with_trained"] = ("seed", np.asarray(overlaps, float))
    dataset["converged"] = ("seed", [run.converged for run in result.runs])
    dataset.attrs = {"d": d, "alpha": ALPHA, "start": start, "damping": result.damping}
    return dataset


def draw(datasets: Datasets) -> Any:
    """One panel for each start."""
    return plot_gamp(datasets)


def compare(datasets: Datasets) -> list[Row]:
    """Compare the last iteration with state evolution, and the fixed point with training."""
    rows = []
    for start, overlap in OVERLAP.items():
        final = datasets[start].isel(iteration=-1)
        for name in ("q", overlap):
            measured, error = float(final[f"{name}_measured"]), float(final[f"{name}_stderr"])
            if not np.isfinite(error):
                # A single run has no spread: fluctuations between data sets are of order 1/sqrt(d).
                error = abs(measured) / float(final.attrs["d"]) ** 0.5
            quantity = f"{name} at iteration {int(final['iteration'])}"
            pair = (float(final[f"{name}_predicted"]), 0.0), (measured, error)
            origin = "state evolution"
            rows.append(
                between_engines(
                    quantity, {"start": start}, *pair, origin, share=0.01, tolerance=0.04 * measured
                )
            )
    cosine = float(datasets["semantic"]["overlap_with_trained"].min())
    cosine_row = within(
        "cosine with the trained student", {"start": "semantic"}, 1.0, (cosine, 0.0), 1e-6,
        "training, this run", "same data, same minimum", tolerance=1e-6,
    )  # fmt: skip
    return [*rows, cosine_row]


def remarks(datasets: Datasets) -> list[str]:
    """Gradient of the training loss at the fixed point."""
    lines = []
    for start in OVERLAP:
        data = datasets[start]
        worst = float(data["gradient"].max())
        settled = int(data["converged"].astype(bool).sum())
        lines.append(
            f"{start} start, d = {data.attrs['d']}, damping {data.attrs['damping']:g}: {settled} "
            f"of {data.sizes['seed']} runs converged, largest |gradient|/sqrt(d) {worst:.1e}."
        )
    overshoot = datasets["positional"]["m_predicted"]
    when = int(overshoot.idxmax("iteration"))
    lines.append(
        "The first iteration from the positional start overshoots in state evolution and in the "
        f"runs: m = {float(overshoot.max()):.2f} at iteration {when}, "
        f"{float(overshoot[-1]):.2f} in the end."
    )
    if not datasets["positional"]["converged"].astype(bool).all():
        lines.append(
            "From the positional start message passing stalls at a small gradient, because the "
            "proximal map jumps."
        )
    return lines


SIZES = {
    "quick": {"d": 300, "seeds": 4, "iterations": 60},
    "full": {"d": 1000, "seeds": 4, "iterations": 200},
}
ITEM = Item("Message passing against state evolution", compute, draw, compare, SIZES, remarks)
