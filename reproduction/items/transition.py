"""The transition at omega = .3: loss difference, overlaps and test error against alpha."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import positional_semantic
from reproduction.facts import Fact, facts
from reproduction.figures.transition import plot_transition
from reproduction.item import Datasets, Item, evenly
from reproduction.released.grids import MAPS, trained
from reproduction.released.runs import steps_of
from reproduction.rows import finite_size, format_number, number, over_seeds, theory_and_training
from reproduction.store import Parts
from reproduction.sweeps import descended, theory_curve
from reproduction.verdict import Row, against_equations, against_runs

OMEGA, SIGMA = 0.3, 0.5
#: Alphas at which numbers of runs were published.
PUBLISHED = (1.005, 1.5025, 2.0)
#: Descent in the limit of large d: the flow and time of the released runs, in larger steps.
FLOW = {"lr": 4.0, "steps": steps_of(4.0, 0.01)}
#: Interval of the search for critical points.
SEARCHED = {"alpha_min": 0.5, "alpha_max": 2.5, "limits": False}


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Both branches along alpha, the critical points, and students trained as released.

    Includes gradient descent after the same time in the limit of large d.
    """
    model = positional_semantic(omega=OMEGA, sigma=SIGMA)
    fixed = {"omega": OMEGA, "sigma": SIGMA, "log2_points": sizes["critical_points"]} | SEARCHED
    runs = trained(parts, sizes["grid"]).sel(omega=[OMEGA], method="nearest")
    return {
        "theory": theory_curve(parts, "theory", model, sizes),
        "critical": parts.study("critical", "critical", fixed),
        "runs": runs,
        "ends": descended(parts, "ends", model, sizes["ends"], sizes, FLOW),
    }


def draw(datasets: Datasets) -> Any:
    """Theory as lines, trained students as points."""
    theories = datasets["theory"], datasets["critical"]
    return plot_transition(*theories, datasets["runs"], ends=datasets["ends"])


def measured(runs: xr.Dataset, quantity: str) -> xr.DataArray:
    """Select a quantity of the runs by its published name."""
    if quantity == "theta/sigma^2":
        return runs["theta"] / SIGMA**2
    return runs[quantity]


def compare(datasets: Datasets) -> list[Row]:
    """Compare published critical points and runs, and theory with training."""
    lines, runs, theory = datasets["critical"], datasets["runs"], datasets["theory"]
    settled = "ours has its error from independent sets of points at this omega"
    rows = [
        against_equations(fact, *number(lines, fact.quantity), settled)
        for name in ("alpha_c", "alpha_l")
        for fact in facts(name)
        if fact.at["omega"] == OMEGA
    ]
    (linear,) = facts("linear_test_error")
    rows.append(against_runs(linear, float(lines["linear_test_error"]), 0.0, 0.0))
    at_omega = runs.sel(omega=OMEGA, method="nearest")
    for name in ("semantic_start", "positional_start"):
        start = name.removesuffix("_start")
        rows += [_published_run(at_omega.sel(start=start), fact) for fact in facts(name)]
    return rows + theory_and_training(
        theory, at_omega, {}, alphas=PUBLISHED, share=finite_size(at_omega), losses=True
    )


def _published_run(runs: xr.Dataset, fact: Fact) -> Row:
    values = measured(runs, fact.quantity).sel(alpha=fact.at["alpha"], method="nearest")
    spread, seeds = float(values.std("seed", ddof=1)), values.sizes["seed"]
    row = against_runs(fact, *over_seeds(values), spread, seeds=seeds)
    start = fact.table.removesuffix("_start")
    return Row(**{**vars(row), "at": {"start": start, **fact.at}})


def remarks(datasets: Datasets) -> list[str]:
    """Critical points and the training in words."""
    lines, runs = datasets["critical"], datasets["runs"]
    return [
        f"alpha_c = {format_number(number(lines, 'alpha_c'))}, alpha_l = "
        f"{format_number(number(lines, 'alpha_l'))} ({lines['message'].item()}).",
        f"Trained at d = {runs.attrs['d']}, {runs.sizes['seed']} data sets a point, both starts on "
        "the same data and |Q*|^2 = d, by gradient descent for the time of the released runs, 5000 "
        "steps of .15; the full lines of the figure are the same flow in the limit of large d.",
        "At the smallest alpha the semantic runs have not reached the minimum of the theory. "
        "The theory of gradient descent, the full line, agrees with them.",
    ]


def _alphas(count: int, first: float = 0.2) -> list[float]:
    """Published alphas, and evenly spaced ones that are not too close to them."""
    spaced = np.asarray(evenly(first, 2.0, count))
    distance = np.abs(spaced[:, None] - PUBLISHED).min(axis=1) > 0.01
    return np.union1d(spaced[distance], PUBLISHED).tolist()


SIZES = {
    "quick": {
        "alphas": _alphas(8), "rtol": 1e-2, "max_log2_points": 15, "critical_points": 16, "d": 1000,
        "grid": MAPS["quick"]["standard"], "ends": [0.5, *PUBLISHED], "log2_ensemble": 11,
    },
    "full": {
        "alphas": _alphas(28), "rtol": 2e-3, "max_log2_points": 18,
        "critical_points": 18, "d": 1000,
        "grid": MAPS["full"]["standard"], "log2_ensemble": 12,
        "ends": [0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0],
    },
}  # fmt: skip
ITEM = Item("The transition at omega = .3", compute, draw, compare, SIZES, remarks)
