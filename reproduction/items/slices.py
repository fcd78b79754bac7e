"""Slices through the phase diagram: other omega, sigma and ridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dotphase import positional_semantic
from reproduction.figures.overlap_slices import plot_overlap_slices
from reproduction.figures.slices import plot_slices
from reproduction.item import Datasets, Item, evenly
from reproduction.released.grids import MAPS, Grid, slice_grid, trained
from reproduction.rows import finite_size, format_number, number, theory_and_training
from reproduction.store import Parts
from reproduction.sweeps import theory_curve
from reproduction.verdict import Row

BASE = {"omega": 0.3, "sigma": 0.5, "ridge": 0.01}
SLICES = {"omega": (0.2, 0.3, 0.7), "sigma": (0.3, 0.5, 0.7, 1.0), "ridge": (0.1, 0.01, 0.001)}

#: Smallest median overlap m that indicates a positional minimum.
POSITIONAL = 0.1


def key(parameter: str, value: float) -> str:
    """Name of the datasets of one slice; the base case is the same in all of them."""
    if value == BASE[parameter]:
        return "base"
    return f"{parameter}-{value:g}"


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """For each slice both branches along alpha, and trained students."""
    results: Datasets = {}
    for parameter, values in SLICES.items():
        for value in values:
            name = key(parameter, value)
            if f"theory-{name}" in results:
                continue
            chosen: dict[str, Any] = {**BASE, parameter: value}
            runs = trained(parts, _grid(sizes["scale"], **chosen))
            results[f"runs-{name}"] = runs.sel(omega=[chosen["omega"]], method="nearest")
            model = positional_semantic(**chosen)
            results[f"theory-{name}"] = theory_curve(parts, f"theory-{name}", model, sizes)
    return results


def _grid(scale: str, omega: float, sigma: float, ridge: float) -> Grid:
    """Grid with the students of a slice; quick slices have separate small grids."""
    if (sigma, ridge) != (BASE["sigma"], BASE["ridge"]):
        return slice_grid(scale, sigma, ridge)
    full_grid = MAPS[scale]["standard"]
    return full_grid if omega in full_grid.omegas else replace(full_grid, omegas=(omega,), d=200)


def draw(datasets: Datasets) -> Any:
    """Loss differences, and the overlaps of every model."""
    columns: dict[str, list[Any]] = {parameter: [] for parameter in SLICES}
    for parameter, values in SLICES.items():
        for value in values:
            name = key(parameter, value)
            columns[parameter].append((value, datasets[f"theory-{name}"], datasets[f"runs-{name}"]))
    return {"": plot_slices(columns), "overlaps": plot_overlap_slices(columns)}


def compare(datasets: Datasets) -> list[Row]:
    """Theory against training at the largest alpha of each slice."""
    rows = []
    for name in _names(datasets):
        theory, runs = datasets[f"theory-{name}"], datasets[f"runs-{name}"].isel(omega=0)
        rows += theory_and_training(theory, runs, {"slice": name}, share=finite_size(runs))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """alpha_c on each slice."""
    lines = []
    for parameter, values in SLICES.items():
        positions = []
        for value in values:
            crossing = number(datasets[f"theory-{key(parameter, value)}"], "alpha_c")
            positions.append(
                f"{value:g}: {format_number(crossing, 3, 'no crossing of two branches')}"
            )
        lines.append(
            f"alpha_c against {parameter}, read off the curves: " + "; ".join(positions) + "."
        )
    return lines + [text for name in _names(datasets) for text in _escaped_runs(name, datasets)]


def _escaped_runs(name: str, datasets: Datasets) -> list[str]:
    """Points with long bars: single runs far below the others have left the positional minimum."""
    runs = datasets[f"runs-{name}"].isel(omega=0).sel(start="positional")
    loss, has_minimum = runs["train_loss"], runs["m"].median("seed") > POSITIONAL
    escaped = (loss < 0.5 * loss.median("seed")).sum("seed").where(has_minimum, 0)
    return [
        f"Slice {name}, alpha = {float(alpha):.3g}: {int(escaped.sel(alpha=alpha))} of "
        f"{loss.sizes['seed']} runs from the positional start have left it, hence the long bars."
        for alpha in loss["alpha"][escaped.values > 0]
    ]


def _names(datasets: Datasets) -> list[str]:
    """The slices, by the names of their datasets."""
    return [key.removeprefix("runs-") for key in datasets if key.startswith("runs-")]


SIZES = {
    "quick": {"alphas": evenly(0.2, 2.0, 6), "rtol": 2e-2, "max_log2_points": 13, "scale": "quick"},
    "full": {"alphas": evenly(0.2, 2.0, 19), "rtol": 5e-3, "max_log2_points": 17, "scale": "full"},
}
ITEM = Item("Slices in omega, sigma and lambda", compute, draw, compare, SIZES, remarks)
