"""What the quadrature does to alpha_c: fixed rules against Sobol points with error bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import plot
from dotphase._numerics.quadrature import gauss_hermite
from dotphase.model import Model
from dotphase.model.paper import positional_semantic
from dotphase.report.facts import Fact, facts
from dotphase.report.item import Datasets, Item
from dotphase.report.rows import number
from dotphase.report.rules import crossing, degree_seven
from dotphase.report.store import Parts
from dotphase.report.verdict import Row, against_equations, between_engines

OMEGA = 0.3


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """alpha_c at omega = .3 from rules of growing size, and from growing numbers of points."""
    model = positional_semantic(omega=OMEGA)
    found = parts.study("points", "critical", {"omega": OMEGA}, {"log2_points": sizes["log2"]})
    points = found.assign_coords(nodes=2 ** found["log2_points"]).swap_dims(log2_points="nodes")
    near = float(points["alpha_c"][-1])
    rules = parts.call("rules", _rules, model, near=near, orders=sizes["orders"])
    return {"points": points, "rules": rules}


def _rules(model: Model, near: float, orders: list[int]) -> xr.Dataset:
    names = ["degree 7, 12 x 12 nodes", *(f"Gauss-Hermite, {order}^4 nodes" for order in orders)]
    rules = [degree_seven(), *(gauss_hermite(order, dims=4) for order in orders)]
    return xr.Dataset(
        {
            "alpha_c": ("rule", [crossing(model, rule, near) for rule in rules]),
            "nodes": ("rule", [rule.weights.size for rule in rules]),
        },
        coords={"rule": names},
    )


def draw(datasets: Datasets) -> Any:
    """alpha_c against the number of nodes."""
    return plot.quadrature(datasets["points"], datasets["rules"], _published().value)


def _published() -> Fact:
    (fact,) = (fact for fact in facts("alpha_c") if fact.at["omega"] == OMEGA)
    return fact


def compare(datasets: Datasets) -> list[Row]:
    """The published value, and our own with a quarter of the points."""
    points, rules = datasets["points"], datasets["rules"]
    last, before = points.isel(nodes=-1), points.isel(nodes=-2)
    ours, rule = number(last, "alpha_c"), (float(rules["alpha_c"][-1]), 0.0)
    settled = (
        f"ours moves by {abs(float(last['alpha_c'] - before['alpha_c'])):.4f} from 2^"
        f"{int(np.log2(before['nodes']))} to 2^{int(np.log2(last['nodes']))} points, a rule of "
        f"degree 7 gives {float(rules['alpha_c'][0]):.3f}, Gauss-Hermite with "
        f"{int(rules['nodes'][-1])} nodes {rule[0]:.4f}"
    )
    return [
        against_equations(_published(), *ours, settled),
        between_engines(
            "alpha_c with fewer points", {"omega": OMEGA, "points": int(before["nodes"])},
            ours, number(before, "alpha_c"), f"{int(last['nodes'])} points", share=0.0,
        ),
        between_engines(
            "alpha_c from the largest Gauss-Hermite rule", {"omega": OMEGA}, ours, rule,
            "Sobol points", share=0.005,
        ),
    ]  # fmt: skip


def remarks(datasets: Datasets) -> list[str]:
    """Every rule in words."""
    rules = datasets["rules"]
    last = rules["alpha_c"][-3:]
    shown = [
        f"{rule}: {float(value):.4f}"
        for rule, value in zip(rules["rule"].values, rules["alpha_c"].values, strict=True)
    ]
    return [
        f"alpha_c at omega = {OMEGA:g} with fixed rules and the same equations and proximal map: "
        + "; ".join(shown)
        + ".",
        "Rules of low degree are off by percents and carry no error bar. Products of "
        "Gauss-Hermite rules know nothing of our points; the largest three lie between "
        f"{float(last.min()):.4f} and {float(last.max()):.4f}, and go on moving as nodes are "
        "added: the proximal map jumps, so that the integrands are not smooth. None of these "
        "rules gives the published value; which rule it used, and whether it found the global "
        "minimum of the proximal problem, is not known to us.",
    ]


SIZES = {
    "quick": {"log2": [12, 14, 16], "orders": [4, 5, 7]},
    "full": {"log2": [12, 13, 14, 15, 16, 17, 18, 19], "orders": [3, 4, 5, 6, 7, 8, 9, 10, 11]},
}
ITEM = Item("What the quadrature does to alpha_c", compute, draw, compare, SIZES, remarks)
