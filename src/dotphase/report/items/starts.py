"""Where training ends: informed against random starts, gradient descent against Adam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import plot
from dotphase.experiments.curve import curve
from dotphase.model.paper import positional_semantic
from dotphase.report.item import Datasets, Item
from dotphase.report.store import Parts
from dotphase.report.sweeps import mean_and_error
from dotphase.report.verdict import Row, between_engines
from dotphase.training.run import train

OMEGA, ALPHA, D = 0.3, 2.0, 100
STARTS, OPTIMIZERS = ("semantic", "positional", "random"), ("gd", "adam")
FIELDS = ("train_loss", "test_error", "m", "theta", "gradient_norm")
MECHANISMS = ("semantic", "positional", "mixed", "uninformed")


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs from every start with every optimiser on the same data sets, and the theory."""
    model = positional_semantic(omega=OMEGA)
    seeds = sizes["seeds"]
    rows = [
        parts.get(
            f"{optimizer}-{start}",
            {"seeds": seeds},
            lambda optimizer=optimizer, start=start: _runs(model, start, optimizer, seeds),  # type: ignore[misc]
        )
        for optimizer in OPTIMIZERS
        for start in STARTS
    ]
    columns = [
        xr.concat(rows[k * len(STARTS) : (k + 1) * len(STARTS)], xr.Variable("start", list(STARTS)))
        for k in range(len(OPTIMIZERS))
    ]
    runs = xr.concat(columns, xr.Variable("optimizer", list(OPTIMIZERS)))
    theory = parts.get(
        "theory", {"alpha": ALPHA}, lambda: curve(model, [ALPHA], rtol=5e-3, most=17)
    )
    return {"theory": theory.isel(alpha=0), "runs": runs}


def _runs(model: Any, start: str, optimizer: str, seeds: int) -> xr.Dataset:
    found = train(model, ALPHA, D, seeds=seeds, start=start, optimizer=optimizer, held_out=2)
    values = {name: ("seed", [getattr(run, name) for run in found.runs]) for name in FIELDS}
    mechanisms = ("seed", [run.mechanism for run in found.runs])
    return xr.Dataset({**values, "mechanism": mechanisms}, attrs={"d": D, "alpha": ALPHA})


def draw(datasets: Datasets) -> Any:
    """Overlaps of every run, one panel for each optimiser, with the minima of the theory."""
    return plot.starts(datasets["theory"], datasets["runs"])


def compare(datasets: Datasets) -> list[Row]:
    """Both optimisers must end in the same place from an informed start."""
    runs, rows = datasets["runs"], []
    for start in ("semantic", "positional"):
        pair = runs["train_loss"].sel(start=start)
        gap = pair.sel(optimizer="adam") - pair.sel(optimizer="gd")
        mean, error = mean_and_error(gap)
        base = float(pair.sel(optimizer="gd").mean())
        rows.append(
            between_engines(
                "training loss",
                {"start": start},
                (base, 0.0),
                (base + float(mean), float(error)),
                ("gradient descent", "Adam"),
            )
        )
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """How many runs found which mechanism."""
    runs, lines = datasets["runs"], []
    for optimizer, name in (("gd", "gradient descent"), ("adam", "Adam")):
        for start in STARTS:
            found = runs["mechanism"].sel(optimizer=optimizer, start=start).values
            counts = ", ".join(
                f"{np.sum(found == kind)} {kind}" for kind in MECHANISMS if np.any(found == kind)
            )
            lines.append(f"{name}, {start} start: {counts} of {found.size} runs.")
    return lines


ITEM = Item(
    title="Informed and random starts, gradient descent and Adam",
    compute=compute,
    draw=draw,
    compare=compare,
    remarks=remarks,
    sizes={"quick": {"seeds": 12}, "full": {"seeds": 100}},
)
