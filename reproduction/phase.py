"""The phase diagrams, for either mixing matrix: theory, training and the critical lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase import diagram, plot, positional_semantic
from dotphase.analysis import fitted_alpha_c, paired_difference
from reproduction.facts import Fact, facts
from reproduction.item import Datasets, Item, evenly
from reproduction.released.grids import ALPHAS, MAPS, OMEGAS, trained
from reproduction.released.procedure import critical
from reproduction.rows import number
from reproduction.store import Parts
from reproduction.verdict import ERRORS, Row, against_equations, between_engines


def compute(mixing: str, parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Both branches on the grid, the critical lines at published omegas, trained students."""

    def family(omega: float) -> Any:
        return positional_semantic(omega=omega, mixing=mixing)

    config = {"alphas": sizes["alphas"], "values": sizes["omegas"]}
    theory = parts.call("theory", diagram, family, log2_points=sizes["log2_points"], **config)
    results: Datasets = {"theory": theory, "runs": trained(parts, sizes["grid"])}
    if mixing == "standard":
        fixed = {"log2_points": sizes["critical_points"], "alpha_max": 4.0, "limits": False}
        results["lines"] = parts.study("lines", "critical", fixed, {"omega": published_omegas()})
        omegas = sizes["procedure_omegas"]
        near = [float(results["lines"]["alpha_c"].sel(omega=omega)) for omega in omegas]
        config = {"omegas": omegas, "near": [round(value, 3) for value in near]}
        results["procedure"] = parts.call("procedure", _procedure, **config)
    return results


def _procedure(omegas: Sequence[float], near: Sequence[float]) -> xr.Dataset:
    """Critical points by the released procedure."""
    positions = [critical(omega, value) for omega, value in zip(omegas, near, strict=True)]
    alpha_c, alpha_l = np.transpose(positions)
    lines = {"alpha_c": ("omega", alpha_c), "alpha_l": ("omega", alpha_l)}
    return xr.Dataset(lines, {"omega": list(omegas)})


def published_omegas() -> list[float]:
    """Values of omega at which critical points were published."""
    return sorted({fact.at["omega"] for name in ("alpha_c", "alpha_l") for fact in facts(name)})


def draw(datasets: Datasets) -> Any:
    """Draw theory above training: loss difference left, gain in test error right."""
    return plot.phase_maps(datasets["theory"], datasets["runs"], datasets.get("lines"))


def compare(datasets: Datasets) -> list[Row]:
    """Published lines, and the crossings of trained students against the theoretical ones."""
    if "lines" not in datasets:
        return []
    lines, rows = datasets["lines"], []
    for name in ("alpha_c", "alpha_l"):
        for fact in facts(name):
            point = lines.sel(omega=fact.at["omega"], method="nearest")
            rows.append(against_equations(fact, *number(point, name), _evidence(fact, datasets)))
    return rows + _trained_alpha_c(lines, datasets["runs"])


def _evidence(fact: Fact, datasets: Datasets) -> str:
    """Evidence for our value at this omega, and the value of the released procedure."""
    text = "ours has its error from independent sets of points at this omega"
    omega, procedure = fact.at["omega"], datasets["procedure"]
    if omega in procedure["omega"].values:
        value = float(procedure[fact.quantity].sel(omega=omega))
        text += f"; the released procedure gives {value:.3f}"
    if not bool(datasets["lines"]["trusted"].sel(omega=omega, method="nearest")):
        text += "; the theory is not trusted there"
    return text


def _trained_alpha_c(lines: xr.Dataset, runs: xr.Dataset) -> list[Row]:
    """alpha_c of trained students against the theory at every omega."""
    rows = []
    for omega in runs["omega"].values:
        near = float(lines["alpha_c"].interp(omega=omega))
        value, error = fitted_alpha_c(runs.sel(omega=omega), near)
        if np.isfinite(value):
            pair = (near, float(lines["alpha_c_stderr"].interp(omega=omega))), (value, error)
            at = {"omega": round(float(omega), 4), "d": int(runs.attrs["d"])}
            row = between_engines("alpha_c of trained students", at, *pair, share=0.01)
            closest = lines.sel(omega=omega, method="nearest")
            if not bool(closest["trusted"]):
                row = row.outside(_alpha_c_error(closest, row))
            rows.append(row)
    return rows


def _alpha_c_error(point: xr.Dataset, row: Row) -> str:
    """Reason for distrust, with the estimated model error of alpha_c."""
    name = "alpha_c_model_error"
    if name not in point or not np.isfinite(float(point[name])):
        return "not trusted: one of the branches is unstable or jumps"
    error = float(point[name])
    text = f"not trusted: symmetry breaking moves alpha_c by {error:.2g}"
    if abs(row.difference) > error + ERRORS * row.noise:
        text += ", which does not explain the difference: the error estimate fails here"
    return text


def agreement(theory: xr.Dataset, runs: xr.Dataset) -> tuple[int, float]:
    """Agreement of training and theory on the lowest minimum, where both branches exist.

    Returns
    -------
    cells, share : int, float
        Trained cells where the theory has both branches, and the share of them in which the
        sign of the loss difference is the same, each weighted by its predicted size.
    """
    field = theory["loss_difference"]
    positions = {"alpha": runs["alpha"], "omega": runs["omega"]}
    # Interpolation loses the neighbors of missing cells: grid cells keep their own value.
    on_grid = field.reindex(positions, method="nearest", tolerance=1e-9)
    predicted = on_grid.where(np.isfinite(on_grid), field.interp(positions))
    trained = paired_difference(runs).mean("seed")
    weight = abs(predicted)
    total = float(weight.sum())
    matching = weight.where(np.sign(trained) == np.sign(predicted)).sum()
    return int(np.isfinite(predicted).sum()), float(matching) / total if total else float("nan")


def remarks(datasets: Datasets) -> list[str]:
    """Sizes of the grids, and the number of compared cells."""
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
        *_procedure_remarks(datasets),
    ]


def _procedure_remarks(datasets: Datasets) -> list[str]:
    """Critical lines of the released procedure, the publication and our theory."""
    if "procedure" not in datasets:
        return []
    procedure, ours = datasets["procedure"], datasets["lines"]
    sentences = []
    for name in ("alpha_c", "alpha_l"):
        printed = {fact.at["omega"]: fact.value for fact in facts(name)}
        positions = [
            f"{omega:g}: {float(procedure[name].sel(omega=omega)):.4g}, {printed[omega]:g}, "
            f"{float(ours[name].sel(omega=omega, method='nearest')):.4g}"
            for omega in procedure["omega"].values.tolist()
            if omega in printed
        ]
        text = f"{name} by omega (released procedure, printed, ours): " + "; ".join(positions) + "."
        sentences.append(text)
    sentences.append(
        "The procedure gives the printed alpha_l to about a percent. Its quadrature rules "
        "explain the difference from our alpha_l. It does not give the printed alpha_c: below "
        "omega = .35 it errs in the other direction. The origin of the printed alpha_c is unknown."
    )
    return sentences


def phase_item(mixing: str, title: str) -> Item:
    """The item for one mixing matrix."""
    sizes = {
        "quick": {
            "alphas": evenly(0.25, 2.0, 8), "omegas": evenly(0, 0.5, 6), "log2_points": 13,
            "critical_points": 14, "grid": MAPS["quick"][mixing], "procedure_omegas": [0.3],
        },
        "full": {
            "alphas": list(ALPHAS), "omegas": list(OMEGAS), "log2_points": 14,
            "critical_points": 18, "grid": MAPS["full"][mixing],
            "procedure_omegas": [0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.425],
        },
    }  # fmt: skip
    return Item(title, partial(compute, mixing), draw, compare, sizes, remarks)
