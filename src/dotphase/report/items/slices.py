"""Slices through the phase diagram: other omega, sigma and ridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dotphase import plot
from dotphase.experiments.curve import curve
from dotphase.model.paper import positional_semantic
from dotphase.report.item import Datasets, Item
from dotphase.report.store import Parts
from dotphase.report.sweeps import mean_and_error, training_grid
from dotphase.report.verdict import Row, between_engines

BASE = {"omega": 0.3, "sigma": 0.5, "ridge": 0.01}
SLICES = {"omega": (0.2, 0.3, 0.7), "sigma": (0.3, 0.5, 0.7), "ridge": (0.1, 0.01, 0.001)}


def key(parameter: str, value: float) -> str:
    """Name of the datasets of one slice; the base case is the same in all of them."""
    if value == BASE[parameter]:
        return "base"
    return f"{parameter}-{value:g}"


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """For each slice both branches along alpha, and trained students."""
    found: Datasets = {}
    for parameter, values in SLICES.items():
        for value in values:
            name = key(parameter, value)
            if f"theory-{name}" in found:
                continue
            model = {**BASE, parameter: value}
            found[f"runs-{name}"] = training_grid(
                parts, f"runs-{name}", alphas=list(sizes["trained"]), omegas=[model["omega"]],
                sigma=model["sigma"], ridge=model["ridge"], d=sizes["d"], seeds=sizes["seeds"],
            )  # fmt: skip
            asked = {"alphas": sizes["alphas"], "rtol": sizes["rtol"], "most": sizes["most"]}
            found[f"theory-{name}"] = parts.get(
                f"theory-{name}",
                {**asked, **model},
                lambda model=model, asked=asked: curve(positional_semantic(**model), **asked),  # type: ignore[misc]
            )
    return found


def draw(datasets: Datasets) -> Any:
    """One column for each parameter."""
    columns = {
        parameter: [
            (value, datasets[f"theory-{key(parameter, value)}"],
             datasets[f"runs-{key(parameter, value)}"])
            for value in values
        ]
        for parameter, values in SLICES.items()
    }  # fmt: skip
    return plot.slices(columns)


def compare(datasets: Datasets) -> list[Row]:
    """Theory against training at the largest alpha of each slice, where it is trusted."""
    rows = []
    for name in (key.removeprefix("runs-") for key in datasets if key.startswith("runs-")):
        theory, runs = datasets[f"theory-{name}"], datasets[f"runs-{name}"].isel(omega=0, alpha=-1)
        for branch, overlap in (("semantic", "theta"), ("positional", "m")):
            point = theory.sel(branch=branch).sel(alpha=float(runs["alpha"]), method="nearest")
            if not (bool(point["trusted"]) and bool(point["on_branch"])):
                continue
            mean, error = mean_and_error(runs[overlap].sel(start=branch))
            # Overlaps have finite-size terms of a few times 1/d, see `concentration`.
            share = 0.01 + 10 / float(runs.attrs["d"])
            rows.append(
                between_engines(
                    overlap,
                    {"slice": name, "branch": branch, "alpha": float(runs["alpha"])},
                    (float(point[overlap]), float(point[f"{overlap}_stderr"])),
                    (float(mean), float(error)),
                    ("theory", "training"),
                    share=share,
                )
            )
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Where the crossing lies on each slice."""
    lines = []
    for parameter, values in SLICES.items():
        places = []
        for value in values:
            theory = datasets[f"theory-{key(parameter, value)}"]
            crossing = float(theory["crossing"])
            error = float(theory["crossing_stderr"])
            shown = (
                f"{crossing:.3f} ± {error:.3f}"
                if np.isfinite(crossing)
                else "no crossing of two branches"
            )
            places.append(f"{value:g}: {shown}")
        lines.append(
            f"alpha_c against {parameter}, read off the curves: " + "; ".join(places) + "."
        )
    return lines


def _grid(count: int) -> list[float]:
    return np.round(np.linspace(0.2, 2.0, count), 4).tolist()


ITEM = Item(
    title="Slices in omega, sigma and lambda",
    compute=compute,
    draw=draw,
    compare=compare,
    remarks=remarks,
    sizes={
        "quick": {
            "alphas": _grid(6), "rtol": 2e-2, "most": 13, "d": 200, "seeds": 2,
            "trained": (0.8, 1.4, 2.0),
        },
        "full": {
            "alphas": _grid(19), "rtol": 5e-3, "most": 17, "d": 1000, "seeds": 8,
            "trained": _grid(10),
        },
    },
)  # fmt: skip
