"""alpha_c on fixed quadrature rules and on Sobol points with error bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import Model, positional_semantic
from dotphase.analysis import gauss_hermite
from reproduction.facts import Fact, facts
from reproduction.figures.quadrature import plot_quadrature
from reproduction.item import Datasets, Item
from reproduction.released.procedure import critical, degree_seven
from reproduction.rows import number
from reproduction.rules import rule_alpha_c
from reproduction.store import Parts
from reproduction.verdict import Row, against_equations

OMEGA = 0.3


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """alpha_c at omega = .3 from rules of growing size, and from growing numbers of points."""
    model = positional_semantic(omega=OMEGA)
    fixed = {"omega": OMEGA, "alpha_min": 0.8, "alpha_max": 1.8, "limits": False}
    sweep = parts.study("points", "critical", fixed, {"log2_points": sizes["log2"]})
    points = sweep.assign_coords(nodes=2 ** sweep["log2_points"]).swap_dims(log2_points="nodes")
    near = float(points["alpha_c"][-1])
    rules = parts.call("fixed", _rules, model, near=round(near, 3), orders=sizes["orders"])
    return {"points": points, "rules": rules}


def _rules(model: Model, near: float, orders: list[int]) -> xr.Dataset:
    """The released procedure first, then products of Gauss-Hermite rules."""
    names = ["released procedure", *(f"Gauss-Hermite, {order}^4 nodes" for order in orders)]
    rules = [gauss_hermite(order, dims=4) for order in orders]
    nodes = degree_seven().weights.size ** 2
    return xr.Dataset(
        {
            "alpha_c": (
                "rule",
                [critical(OMEGA, near)[0], *(rule_alpha_c(model, rule, near) for rule in rules)],
            ),
            "nodes": ("rule", [nodes, *(rule.weights.size for rule in rules)]),
        },
        coords={"rule": names},
    )


def draw(datasets: Datasets) -> Any:
    """alpha_c against the number of nodes."""
    return plot_quadrature(datasets["points"], datasets["rules"], _published().value)


def _published() -> Fact:
    (fact,) = (fact for fact in facts("alpha_c") if fact.at["omega"] == OMEGA)
    return fact


def compare(datasets: Datasets) -> list[Row]:
    """The published value."""
    points, rules = datasets["points"], datasets["rules"]
    finest, second = points.isel(nodes=-1), points.isel(nodes=-2)
    settled = (
        f"ours moves by {abs(float(finest['alpha_c'] - second['alpha_c'])):.4f} from 2^"
        f"{int(np.log2(second['nodes']))} to 2^{int(np.log2(finest['nodes']))} points, the "
        f"released procedure gives {float(rules['alpha_c'][0]):.4f}, Gauss-Hermite with "
        f"{int(rules['nodes'][-1])} nodes {float(rules['alpha_c'][-1]):.4f}"
    )
    return [against_equations(_published(), *number(finest, "alpha_c"), settled)]


def remarks(datasets: Datasets) -> list[str]:
    """Every rule in words."""
    rules = datasets["rules"]
    largest_rules = rules["alpha_c"][-3:]
    values = [
        f"{rule}: {float(value):.4f}"
        for rule, value in zip(rules["rule"].values, rules["alpha_c"].values, strict=True)
    ]
    return [
        f"alpha_c at omega = {OMEGA:g} with fixed rules: " + "; ".join(values) + ".",
        "The released procedure has 12 nodes for each pair of fields in the fixed point and 28 in "
        "the loss, and a local minimization from X = 0. The others use the global proximal map. "
        "Products of Gauss-Hermite rules are independent of our points. The largest three lie "
        f"between {float(largest_rules.min()):.4f} and {float(largest_rules.max()):.4f}, "
        "and still move as nodes are added: the proximal map jumps, and the integrands are not "
        "smooth. None of these gives the printed value.",
    ]


SIZES = {
    "quick": {"log2": [12, 14, 16], "orders": [4, 5, 7]},
    "full": {"log2": [12, 13, 14, 15, 16, 17, 18, 19], "orders": [3, 4, 5, 6, 7, 8, 9, 10, 11]},
}
ITEM = Item("Quadrature rules and alpha_c", compute, draw, compare, SIZES, remarks)
