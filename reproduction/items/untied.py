"""Separate queries and keys: position and size of the jump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import positional_semantic
from dotphase.analysis import trained_alpha_c
from reproduction.figures.family import plot_family
from reproduction.item import Datasets, Item, evenly
from reproduction.rows import finite_size, format_number, number, theory_and_training
from reproduction.store import Parts
from reproduction.sweeps import theory_curve, training_grid
from reproduction.verdict import Row, between_engines

OMEGA = 0.3
STUDENTS = {"tied": False, "untied": True}


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs from both starts on the same data, and both branches, for both students."""
    results: Datasets = {}
    for student in sizes["students"]:
        name, trained = f"runs-{student}", sizes["trained"]
        untied = STUDENTS[student]
        results[name] = training_grid(parts, name, sizes, trained, [OMEGA], untied=untied)
    for student in sizes["students"]:
        name, model = f"theory-{student}", positional_semantic(OMEGA, untied=STUDENTS[student])
        results[name] = theory_curve(parts, name, model, sizes)
    return results


def per_column(dataset: xr.Dataset, name: str) -> xr.Dataset:
    """Overlaps of an untied student for one of its two columns, comparable with a tied student.

    Norms sum over queries and keys. Both have equal norms at every minimum: the loss is the same
    for (c Q, K/c), and the ridge selects the symmetric one.
    """
    if name == "tied":
        return dataset
    scaled = [key for key in ("theta", "m", "theta_stderr", "m_stderr") if key in dataset]
    return dataset.assign({key: dataset[key] / np.sqrt(2) for key in scaled})


def _students(datasets: Datasets) -> list[str]:
    return [name for name in STUDENTS if f"runs-{name}" in datasets]


def draw(datasets: Datasets) -> Any:
    """Tied and untied students against alpha."""
    return plot_family(
        [
            (
                name,
                per_column(datasets[f"theory-{name}"], name),
                per_column(datasets[f"runs-{name}"], name),
            )
            for name in _students(datasets)
        ]
    )


def compare(datasets: Datasets) -> list[Row]:
    """Compare theory and training at the largest alpha, and both values of alpha_c."""
    rows = []
    for name in _students(datasets):
        theory, runs = datasets[f"theory-{name}"], datasets[f"runs-{name}"].isel(omega=0)
        share = finite_size(runs)
        rows += theory_and_training(theory, runs, {"student": name}, share=share)
        pair = number(theory, "alpha_c"), trained_alpha_c(runs)
        rows.append(between_engines("alpha_c", {"student": name}, *pair, share=share))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Position and size of the jump."""
    lines = []
    for name in _students(datasets):
        theory, runs = datasets[f"theory-{name}"], datasets[f"runs-{name}"].isel(omega=0)
        at = float(theory["alpha_c"])
        lines.append(
            f"{name}: the training losses cross at alpha_c = "
            f"{format_number(number(theory, 'alpha_c'), 3, 'nan')} in theory and "
            f"{format_number(trained_alpha_c(runs), 3, 'nan')} trained at d = {runs.attrs['d']}."
        )
        if np.isfinite(at):
            at_transition = per_column(theory, name).sortby("alpha").interp(alpha=at)
            theta = float(at_transition["theta"].sel(branch="semantic"))
            m = float(at_transition["m"].sel(branch="positional"))
            lines.append(
                f"{name}: there the lowest minimum jumps from m = {m:.3f} per column and "
                f"theta = 0 to m = 0 and theta = {theta:.3f} per column."
            )
    return lines


SIZES = {
    "quick": {
        "students": ["untied"], "alphas": [1.6, 2.3, 3.0], "log2_points": 12, "d": 200,
        "seeds": 4,
        "trained": (1.6, 2.3, 3.0),
    },
    "full": {
        "students": ["tied", "untied"],
        "alphas": evenly(0.8, 3.2, 13), "log2_points": 14, "d": 500,
        "seeds": 8, "trained": (1.0, 1.2, 1.4, 1.8, 2.0, 2.2, 2.4, 2.8, 3.2),
    },
}  # fmt: skip
ITEM = Item("Separate queries and keys", compute, draw, compare, SIZES, remarks)
