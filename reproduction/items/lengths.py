"""Longer sentences and students of higher rank: shift of alpha_c, and mixed minima."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase import diagram, positional_semantic
from dotphase.analysis import locate_fall, trained_alpha_c
from reproduction.figures.lengths import plot_lengths
from reproduction.figures.winners import mechanism, plot_winners
from reproduction.item import Datasets, Item
from reproduction.rows import OVERLAP, finite_size, format_number, number, over_seeds, usable
from reproduction.store import Parts
from reproduction.sweeps import theory_curve, training_grid
from reproduction.verdict import Row, between_engines

OMEGA = 0.3


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """For each length trained students and both branches; for each rank a map of the branches."""
    results: Datasets = {}
    for length, alphas in sizes["trained"].items():
        name = f"runs-{length}"
        results[name] = training_grid(parts, name, sizes, alphas, [OMEGA], length=length)
    for length, alphas in sizes["alphas"].items():
        name, model = f"theory-{length}", positional_semantic(OMEGA, length=length)
        results[name] = theory_curve(parts, name, model, {**sizes, "alphas": alphas})
    for rank in sizes["ranks"]:
        informed = ("semantic",) if rank == 1 else ("mixed", "semantic")
        name, family = f"theory-rank-{rank}", partial(positional_semantic, student_rank=rank)
        results[name] = parts.call(name, diagram, family, informed=informed, **sizes["map"])
    return results


def _lengths(datasets: Datasets) -> list[int]:
    return [int(name.removeprefix("runs-")) for name in datasets if name.startswith("runs-")]


def lines(datasets: Datasets) -> xr.Dataset:
    """alpha_c and alpha_l against the length, in theory, and the crossings of the runs."""
    results = []
    for length in _lengths(datasets):
        theory = datasets[f"theory-{length}"].sortby("alpha")
        numbers = {
            "alpha_c": number(theory, "alpha_c"),
            "alpha_l": passes_linear(theory),
            "trained": trained_alpha_c(both_minima(datasets[f"runs-{length}"].isel(omega=0))),
        }
        row = xr.Dataset({"trusted": _trusted_around(theory, numbers["alpha_c"][0])})
        for name, (value, error) in numbers.items():
            row = row.assign({name: value, f"{name}_stderr": error})
        results.append(row)
    return xr.concat(results, xr.Variable("length", _lengths(datasets)))


def passes_linear(theory: xr.Dataset) -> tuple[float, float]:
    """alpha_l, where the semantic test error falls below the linear layer's, and its error."""
    semantic = theory.sel(branch="semantic")
    is_minimum = semantic["on_branch"].astype(bool)
    if "kind" in semantic:
        is_minimum &= semantic["kind"] != "saddle"
    semantic = semantic.isel(alpha=np.flatnonzero(is_minimum.values))
    gap = semantic["test_error"] - semantic["linear_test_error"]
    return locate_fall(semantic["alpha"].values, gap.values, semantic["test_error_stderr"].values)


def _trusted_around(theory: xr.Dataset, alpha: float) -> float:
    """1 if both branches are trusted on both sides of an alpha, 0 otherwise."""
    if not np.isfinite(alpha):
        return 0.0
    grid = theory["alpha"].values
    right = int(np.clip(np.searchsorted(grid, alpha), 1, grid.size - 1))
    adjacent = theory["trusted"].isel(alpha=slice(right - 1, right + 1))
    return float(bool(adjacent.astype(bool).all()))


def draw(datasets: Datasets) -> dict[str, Any]:
    """The lengths against each other, and a map of the lowest minimum for each rank."""
    members = [
        (f"$L = {length}$", datasets[f"theory-{length}"], datasets[f"runs-{length}"])
        for length in _lengths(datasets)
    ]
    figures = {"": plot_lengths(members, lines(datasets))}
    maps = _maps(datasets)
    return figures | ({"ranks": plot_winners(maps)} if maps else {})


def _maps(datasets: Datasets) -> list[tuple[str, xr.Dataset]]:
    prefix = "theory-rank-"
    return [
        (f"student of rank {name.removeprefix(prefix)}", dataset)
        for name, dataset in datasets.items()
        if name.startswith(prefix)
    ]


def stayed(runs: xr.Dataset, branch: str) -> xr.DataArray:
    """True for runs that ended in the minimum of their start; at finite d some escape."""
    ends = runs.sel(start=branch)
    semantic: xr.DataArray = ends["theta"] > ends["m"]
    return semantic if branch == "semantic" else ~semantic


def both_minima(runs: xr.Dataset) -> xr.Dataset:
    """Select alphas at which most runs kept their minimum: only their losses can cross."""
    majority_stayed = [
        stayed(runs, branch).mean("seed") > 0.5 for branch in ("semantic", "positional")
    ]
    return runs.isel(alpha=np.flatnonzero((majority_stayed[0] & majority_stayed[1]).values))


def compare(datasets: Datasets) -> list[Row]:
    """Compare theory and training at the largest alpha at which the theory is trusted.

    Only runs that ended in the minimum of their start count.
    """
    rows = []
    for length in _lengths(datasets):
        theory, runs = datasets[f"theory-{length}"], datasets[f"runs-{length}"].isel(omega=0)
        for branch, overlap in OVERLAP.items():
            branch_theory = theory.sel(branch=branch)
            trusted = theory["alpha"].values[usable(branch_theory).values]
            common_alphas = [a for a in runs["alpha"].values if a in trusted]
            if not common_alphas:
                continue
            alpha = float(max(common_alphas))
            point = branch_theory.sel(alpha=alpha)
            ended = np.flatnonzero(stayed(runs, branch).sel(alpha=alpha).values)
            if ended.size < 2:
                continue
            ours = over_seeds(runs[overlap].sel(start=branch, alpha=alpha).isel(seed=ended))
            at = {"L": length, "branch": branch, "alpha": alpha, "runs": ended.size}
            pair = number(point, overlap), ours
            judged: dict[str, Any] = {"share": finite_size(runs), "seeds": ended.size}
            rows.append(between_engines(overlap, at, *pair, **judged))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Critical points by length, and the lowest minima by rank, in words."""
    results = lines(datasets)
    texts = []
    for name in ("alpha_c", "alpha_l", "trained"):
        values = "; ".join(
            f"L = {int(length)}: {format_number(number(results.sel(length=length), name), 3)}"
            for length in results["length"]
        )
        label = "crossing of the training losses at finite d" if name == "trained" else name
        texts.append(f"{label}, by length: {values}.")
    doubtful = [str(int(n)) for n in results["length"][results["trusted"].values == 0]]
    if doubtful:
        texts.append(
            "At alpha_c one of the branches is not trusted for L = " + ", ".join(doubtful) + "."
        )
    for length in _lengths(datasets):
        escaped = ~stayed(datasets[f"runs-{length}"].isel(omega=0), "positional")
        shares = [
            f"{float(a):g}: {float(escaped.sel(alpha=a).mean()):.2f}" for a in escaped["alpha"]
        ]
        texts.append(
            f"L = {length}: share of runs that leave the positional start, by alpha: "
            + "; ".join(shares)
            + "."
        )
    for title, theory in _maps(datasets):
        winner = mechanism(theory)
        names = ("positional", "semantic", "mixed")
        counts = ", ".join(f"{name} in {int((winner == name).sum())}" for name in names)
        texts.append(f"Lowest minimum, {title}: {counts} of {winner.size} cells.")
    return texts


#: Sample complexities around alpha_c and alpha_l, by length.
FULL = {
    2: [0.8, 1.1, 1.4, 1.7, 2.0],
    3: [0.25, 0.35, 0.5, 0.7, 1.0, 1.4],
    4: [0.25, 0.35, 0.5, 0.7, 1.0],
    5: [0.2, 0.3, 0.4, 0.5, 0.7, 1.0],
    6: [0.2, 0.3, 0.4, 0.5, 0.7, 1.0],
}

SIZES = {
    "quick": {
        "alphas": {2: [1.0, 1.5], 3: [0.45, 0.8]}, "log2_points": 12, "d": 150, "seeds": 4,
        "trained": {2: [1.01, 1.5], 3: [0.45, 0.8]}, "ranks": [], "map": {},
    },
    "full": {
        "alphas": FULL, "trained": FULL,
        "log2_points": 14, "d": 500, "seeds": 8, "ranks": [1, 2, 3],
        "map": {
            "alphas": [0.4, 0.7, 1.0, 1.3, 1.6, 2.0], "values": [0.0, 0.15, 0.3, 0.45],
            "log2_points": 12,
        },
    },
}  # fmt: skip
ITEM = Item("Longer sentences and higher rank", compute, draw, compare, SIZES, remarks)
