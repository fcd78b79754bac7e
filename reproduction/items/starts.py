"""Ends of training: informed and random starts, gradient descent and Adam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dotphase import positional_semantic
from reproduction.figures.scatter_by_start import plot_scatter_by_start
from reproduction.item import Datasets, Item
from reproduction.rows import OVERLAP, differences
from reproduction.store import RANDOM_NORM, Parts
from reproduction.sweeps import theory_curve
from reproduction.verdict import Row

OMEGA, ALPHA, D = 0.3, 2.0, 100
THEORY = {"alphas": [ALPHA], "rtol": 5e-3, "max_log2_points": 17}
STARTS, OPTIMIZERS = ("semantic", "positional", "random"), ("gd", "adam")
MECHANISMS = ("semantic", "positional", "mixed", "uninformed")


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs from every start with every optimizer on the same data sets, and the theory."""
    runs = parts.study(
        "runs",
        "train",
        fixed={"omega": OMEGA, "alpha": ALPHA, "d": D, "held_out": 2, **RANDOM_NORM},
        sweep={"optimizer": OPTIMIZERS, "start": STARTS, "first_index": range(sizes["seeds"])},
    ).rename(first_index="seed")
    theory = theory_curve(parts, "theory", positional_semantic(omega=OMEGA), THEORY)
    runs = runs.assign_attrs(runs.attrs | {"d": D, "alpha": ALPHA})
    return {"theory": theory.isel(alpha=0), "runs": runs}


def draw(datasets: Datasets) -> Any:
    """Overlaps of every run, one panel for each optimizer, with the minima of the theory."""
    return plot_scatter_by_start(datasets["theory"], datasets["runs"])


def compare(datasets: Datasets) -> list[Row]:
    """Compare the training losses of both optimizers from informed starts."""
    rows = []
    for start in OVERLAP:
        pair = [datasets["runs"].sel(start=start, optimizer=name) for name in OPTIMIZERS]
        rows += differences(pair, ["train_loss"], {"start": start}, "gradient descent")
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Number of runs that ended with each mechanism."""
    runs, lines = datasets["runs"], []
    for optimizer, name in (("gd", "gradient descent"), ("adam", "Adam")):
        for start in STARTS:
            ends = runs["mechanism"].sel(optimizer=optimizer, start=start).values
            counts = ", ".join(
                f"{np.sum(ends == kind)} {kind}" for kind in MECHANISMS if np.any(ends == kind)
            )
            lines.append(f"{name}, {start} start: {counts} of {ends.size} runs.")
    return lines


SIZES = {"quick": {"seeds": 12}, "full": {"seeds": 100}}
ITEM = Item(
    "Informed and random starts, gradient descent and Adam", compute, draw, compare, SIZES, remarks
)
