"""Beyond the paper: which minimum is found from random starts, and the population flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from dotphase import basins, plot, positional_semantic
from dotphase.analysis import basin_shares, mean_and_error
from dotphase.flow import descent
from dotphase.flow import field as flow_field
from dotphase.flow import fixed_points as flow_fixed_points
from dotphase.flow import follow as population_flow
from dotphase.plot.style import OPTIMIZER_LABELS
from reproduction.item import Datasets, Item
from reproduction.rows import number
from reproduction.store import RANDOM_NORM, Parts
from reproduction.verdict import Row, between_engines

OMEGA = 0.3
#: Overlaps at the start of the trajectories, and how long they are followed.
START: dict[str, Any]
START, UNTIL = {"m": 0.1, "theta": 0.03, "q": 0.06}, 160.0
#: alpha of the two flow fields; it enters through ridge/alpha alone.
FIELDS = (np.inf, 2.0)
OVERLAPS = ("m", "theta", "q")


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Basins, gradient descent on many sentences, the population flow, and flow fields."""
    config = {name: sizes[name] for name in ("alphas", "scales", "d", "seeds", "steps")}
    model = positional_semantic(omega=OMEGA)
    dataset: Datasets = {
        "runs-basins": parts.call("runs-basins", basins, model, **config, **RANDOM_NORM)
    }
    sizes_of_descent = {name: sizes[name] for name in ("many", "dimensions", "paths", "records")}
    dataset["runs-descent"] = parts.call("runs-descent", _descent, **sizes_of_descent)
    for index, alpha in enumerate(FIELDS):
        name = f"theory-field-{index}"
        dataset[name] = parts.call(name, _field, alpha=alpha, count=sizes["grid"])
    dataset["theory-flow"] = parts.call("theory-flow", _flow, many=sizes["many"])
    return dataset


def _descent(many: float, dimensions: list[int], paths: int, records: int) -> xr.Dataset:
    """Means and errors of the overlaps at two dimensions, and their limit if linear in 1/d."""
    model = positional_semantic(omega=OMEGA)
    small, large = (
        descent(model, many, d, **START, until=UNTIL, seeds=paths, records=records)
        for d in dimensions
    )
    a = dimensions[1] / (dimensions[1] - dimensions[0])
    dataset = xr.Dataset(attrs={"alpha": many, "dimensions": dimensions, "seeds": paths})
    for name in OVERLAPS:
        (small_mean, small_error), (large_mean, large_error) = (
            mean_and_error(runs[name]) for runs in (small, large)
        )
        dataset[name] = a * large_mean - (a - 1) * small_mean
        dataset[f"{name}_stderr"] = np.hypot(a * large_error, (a - 1) * small_error)
        dataset[f"{name}_large"] = large_mean
    return dataset


def _flow(many: float) -> xr.Dataset:
    """The flow from the same start, and the largest alpha with a positional minimum."""
    model = positional_semantic(omega=OMEGA)
    times = np.linspace(0, UNTIL, 81)
    path = population_flow(model, START["m"], START["theta"], START["q"], times, alpha=many)
    values = {name: ("tau", getattr(path, name)[:, 0]) for name in OVERLAPS}
    dataset = xr.Dataset(values, coords={"tau": times})

    def growth(weight: float) -> float:
        points = flow_fixed_points(model, alpha=1 / weight if weight else np.inf, starts=3)
        (point,) = (point for point in points if point.m > 0.05 and point.theta < 1e-6)
        return max(point.rates)

    dataset["positional_ends"] = 1 / brentq(growth, 1e-6, 0.5, xtol=1e-4)
    return dataset


def _field(alpha: float, count: int) -> xr.Dataset:
    model = positional_semantic(omega=OMEGA)
    m, theta = np.linspace(0, 0.5, count), np.linspace(0, 0.26, count)
    m_speed, theta_speed, loss, _ = flow_field(model, m, theta, alpha=alpha)
    points = flow_fixed_points(model, alpha=alpha)
    axes = ("theta", "m")
    fields = {"m_speed": (axes, m_speed), "theta_speed": (axes, theta_speed), "loss": (axes, loss)}
    dataset = xr.Dataset(fields, {"m": m, "theta": theta})
    for name in ("m", "theta", "loss"):
        dataset[f"point_{name}"] = ("point", [getattr(point, name) for point in points])
    dataset["point_stable"] = ("point", [int(point.stable) for point in points])
    dataset["point_rate"] = ("point", [max(point.rates) for point in points])
    return dataset


def draw(datasets: Datasets) -> Any:
    """Basin maps, and the flow."""
    fields = {alpha: datasets[f"theory-field-{k}"] for k, alpha in enumerate(FIELDS)}
    return {
        "": plot.basins(datasets["runs-basins"]),
        "flow": plot.flow(fields, datasets["theory-flow"], datasets["runs-descent"]),
    }


def compare(datasets: Datasets) -> list[Row]:
    """Compare flow and gradient descent at large d, at half the time and at the end."""
    alpha, rows = float(datasets["runs-descent"].attrs["alpha"]), []
    for tau in (UNTIL / 2, UNTIL):
        flow, runs = (
            datasets[name].sel(tau=tau, method="nearest")
            for name in ("theory-flow", "runs-descent")
        )
        at = {"tau": tau, "alpha": alpha}
        for name in OVERLAPS:
            pair = (float(flow[name]), 0.0), number(runs, name)
            # Corrections of order 1/alpha and of second order in 1/d.
            rows.append(between_engines(name, at, *pair, "population flow", share=1 / alpha))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Shares at the corners of the maps, and fixed points of the flow, in words."""
    runs = datasets["runs-basins"]
    shares, lines = basin_shares(runs), []
    for name in runs["optimizer"].values:
        corners = []
        for scale in (runs["scale"].values[0], runs["scale"].values[-1]):
            for alpha in (runs["alpha"].values[0], runs["alpha"].values[-1]):
                cell = shares.sel(optimizer=name, scale=scale, alpha=alpha, mechanism="semantic")
                corners.append(
                    f"{100 * float(cell['share']):.0f} ± {100 * float(cell['stderr']):.0f}% at "
                    f"s = {scale:g}, alpha = {alpha:g}"
                )
        lines.append(
            f"{OPTIMIZER_LABELS[str(name)]} ends in the semantic minimum in " + "; ".join(corners)
            + f" ({runs.sizes['seed']} data sets each, d = {runs.attrs['d']})."
        )  # fmt: skip
    # With mini-batches the gradient never vanishes.
    settled = float((runs["outcome"].sel(optimizer=runs["optimizer"] != "sgd") == 1).mean())
    lines.append(f"{100 * settled:.1f}% of the runs other than those of SGD converged.")
    for index, alpha in enumerate(FIELDS):
        field = datasets[f"theory-field-{index}"]
        descriptions = [
            f"({x:.3f}, {y:.3f}) {'minimum' if stable else 'unstable'}, fastest rate {rate:+.4f}"
            for x, y, stable, rate in zip(
                *(field[f"point_{name}"].values for name in ("m", "theta", "stable", "rate")),
                strict=True,
            )
        ]
        where = "without ridge" if np.isinf(alpha) else f"with ridge/alpha as at alpha = {alpha:g}"
        lines.append(
            f"Fixed points (m, theta) of the population flow {where}: " + "; ".join(descriptions)
        )
    ends = float(datasets["theory-flow"]["positional_ends"])
    lines.append(
        f"In the population flow the positional point is a minimum only below alpha = {ends:.2f}, "
        "where the ridge stabilizes it. Above, it is a saddle that leads to the semantic minimum."
    )
    return lines


SIZES = {
    "quick": {
        "alphas": [1.0, 2.0, 4.0], "scales": [0.01, 0.1, 1.0], "d": 100, "seeds": 4,
        "steps": {"gd": 1500, "adam": 600, "sgd": 2000}, "many": 20.0,
        "dimensions": [50, 100], "paths": 8, "records": 8, "grid": 13,
    },
    "full": {
        "alphas": [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0],
        "scales": [0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0], "d": 100, "seeds": 32,
        "steps": {"gd": 3000, "adam": 1500, "sgd": 6000}, "many": 40.0,
        "dimensions": [100, 200], "paths": 12, "records": 16, "grid": 25,
    },
}  # fmt: skip
ITEM = Item("Basins of attraction and the population flow", compute, draw, compare, SIZES, remarks)
