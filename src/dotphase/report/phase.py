"""The phase diagrams, for either mixing matrix: theory, training and the critical lines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase import plot
from dotphase.experiments.diagram import diagram
from dotphase.experiments.trained import fitted_crossing, paired_difference
from dotphase.model.paper import positional_semantic
from dotphase.report.facts import facts
from dotphase.report.item import Datasets, Item, evenly
from dotphase.report.rows import number
from dotphase.report.store import Parts
from dotphase.report.sweeps import training_grid
from dotphase.report.verdict import Row, against_equations, between_engines

SETTLED = "ours is converged in the number of points, see `quadrature`"


def compute(mixing: str, parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Both branches on the grid, the critical lines at published omegas, trained students."""

    def family(omega: float) -> Any:
        return positional_semantic(omega=omega, mixing=mixing)

    trained = sizes["trained_alphas"], sizes["trained_omegas"]
    runs = training_grid(parts, "runs", sizes, *trained, mixing=mixing)
    asked = {"alphas": sizes["alphas"], "values": sizes["omegas"]}
    theory = parts.call("theory", diagram, family, log2_points=sizes["log2_points"], **asked)
    found: Datasets = {"theory": theory, "runs": runs}
    if mixing == "standard":
        fixed = {"log2_points": sizes["critical_points"], "largest": 4.0}
        found["lines"] = parts.study("lines", "critical", fixed, {"omega": published_omegas()})
    return found


def published_omegas() -> list[float]:
    """Values of omega at which critical points were published."""
    return sorted({fact.at["omega"] for name in ("alpha_c", "alpha_l") for fact in facts(name)})


def draw(datasets: Datasets) -> Any:
    """Theory above, training below; loss difference left, gain in test error right."""
    return plot.phase_maps(datasets["theory"], datasets["runs"], datasets.get("lines"))


def compare(datasets: Datasets) -> list[Row]:
    """Published lines, and the finite-d map against the theoretical one."""
    rows = []
    if "lines" in datasets:
        for name in ("alpha_c", "alpha_l"):
            for fact in facts(name):
                point = datasets["lines"].sel(omega=fact.at["omega"], method="nearest")
                doubt = "" if bool(point["trusted"]) else "; jumps: the theory is not trusted there"
                rows.append(against_equations(fact, *number(point, name), SETTLED + doubt))
        rows += _trained_crossings(datasets["lines"], datasets["runs"])
    cells, share = agreement(datasets["theory"], datasets["runs"])
    if cells:
        name, pair = "share of the loss difference with the same sign", ((1.0, 0.0), (share, 0.0))
        # Cells next to the crossing are lost to noise, so not all of the weight can be asked for.
        rows.append(between_engines(name, {"cells": cells}, *pair, share=0.1))
    return rows


def _trained_crossings(lines: xr.Dataset, runs: xr.Dataset) -> list[Row]:
    """Where the losses of trained students cross, against the line of the theory."""
    rows = []
    for omega in runs["omega"].values:
        near = float(lines["alpha_c"].interp(omega=omega))
        value, error = fitted_crossing(runs.sel(omega=omega), near)
        if np.isfinite(value):
            pair = (near, float(lines["alpha_c_stderr"].interp(omega=omega))), (value, error)
            at = {"omega": round(float(omega), 4), "d": int(runs.attrs["d"])}
            rows.append(between_engines("alpha_c of trained students", at, *pair, share=0.03))
    # A line every few omegas is enough to read.
    return rows[:: max(1, len(rows) // 5)]


def agreement(theory: xr.Dataset, runs: xr.Dataset) -> tuple[int, float]:
    """In how far training has the same lowest minimum as theory, where both branches exist.

    Returns
    -------
    cells, share : int, float
        Trained cells where the theory has both branches, and the share of them in which the
        sign of the loss difference is the same, each weighted by its predicted size.
    """
    field = theory["loss_difference"]
    places = {"alpha": runs["alpha"], "omega": runs["omega"]}
    # Interpolation loses the neighbours of missing cells: what is on the grid is taken from it.
    there = field.reindex(places, method="nearest", tolerance=1e-9)
    predicted = there.where(np.isfinite(there), field.interp(places))
    trained = paired_difference(runs).mean("seed")
    weight = abs(predicted)
    total = float(weight.sum())
    same = weight.where(np.sign(trained) == np.sign(predicted)).sum()
    return int(np.isfinite(predicted).sum()), float(same) / total if total else float("nan")


def remarks(datasets: Datasets) -> list[str]:
    """Sizes, and how many cells could be compared."""
    theory, runs = datasets["theory"], datasets["runs"]
    cells, share = agreement(theory, runs)
    lost = int((~theory["on_branch"].astype(bool)).any("branch").sum())
    total = theory.sizes["alpha"] * theory.sizes["omega"]
    return [
        f"Theory on {theory.sizes['alpha']} x {theory.sizes['omega']} cells; in {lost} of {total} "
        "one of the two branches does not exist.",
        f"Training at d = {runs.attrs['d']} on {runs.sizes['alpha']} x {runs.sizes['omega']} "
        f"cells, {runs.sizes['seed']} data sets each, both starts on the same data; in {cells} of "
        f"them the theory has both branches, and {100 * share:.1f}% of their loss difference has "
        "the same sign.",
    ]


def phase_item(mixing: str, title: str) -> Item:
    """The item for one mixing matrix."""
    alphas, grid = evenly(0.25, 2.0, 8), (evenly(0.08, 2.0, 25), evenly(0, 0.5, 25))
    sizes = {
        "quick": {
            "alphas": alphas, "omegas": evenly(0, 0.5, 6), "log2_points": 13,
            "critical_points": 14, "d": 100, "seeds": 2, "trained_alphas": alphas[1::2],
            "trained_omegas": evenly(0, 0.5, 4),
        },
        "full": {
            "alphas": grid[0], "omegas": grid[1], "log2_points": 14, "critical_points": 18,
            "d": 1000, "seeds": 2, "trained_alphas": grid[0], "trained_omegas": grid[1],
        },
    }  # fmt: skip
    return Item(title, partial(compute, mixing), draw, compare, sizes, remarks)
