"""A student of rank two on the teacher of rank one: theory and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dotphase.figures.phase_maps import plot_phase_maps
from dotphase.paper import positional_semantic
from dotphase.report.item import Datasets, Item
from dotphase.report.phase import agreement
from dotphase.report.store import Parts
from dotphase.report.sweeps import training_grid
from dotphase.report.verdict import Row, between_engines
from dotphase.study.diagram import diagram

INFORMED = ("mixed", "semantic")


def _family(omega: float) -> Any:
    return positional_semantic(omega=omega, student_rank=2)


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """The branches on the grid, and students trained from a semantic and a positional start."""
    runs = training_grid(
        parts,
        "runs",
        alphas=sizes["trained_alphas"],
        omegas=sizes["trained_omegas"],
        d=sizes["d"],
        seeds=sizes["seeds"],
        student_rank=2,
    )
    asked = {"alphas": sizes["alphas"], "values": sizes["omegas"], "points": sizes["points"]}
    theory = parts.get("theory", asked, lambda: diagram(_family, informed=INFORMED, **asked))
    return {"theory": theory, "runs": runs}


def draw(datasets: Datasets) -> Any:
    """The same maps as for rank one; semantic means the lower of mixed and semantic."""
    return plot_phase_maps(datasets["theory"], datasets["runs"])


def compare(datasets: Datasets) -> list[Row]:
    """Which minimum is lowest, in theory and in training."""
    cells, share = agreement(datasets["theory"], datasets["runs"])
    if not cells:
        return []
    return [
        between_engines(
            "share of the loss difference with the same sign", {"cells": cells}, (1.0, 0.0),
            (share, 0.0), ("theory", "training"), share=0.1,
        )
    ]  # fmt: skip


def remarks(datasets: Datasets) -> list[str]:
    """Where the mixed mechanism exists and wins."""
    theory, runs = datasets["theory"], datasets["runs"]
    found = theory["found"].sel(branch="semantic")
    there = theory["on_branch"].astype(bool).sel(branch="semantic")
    mixed = (found == "mixed") & there
    wins = mixed & (theory["winner"] == "semantic")
    total = theory.sizes["alpha"] * theory.sizes["omega"]
    lines = [
        f"The mixed minimum (one direction semantic, one positional) exists in {int(mixed.sum())} "
        f"of {total} cells of the theory and is the lowest in {int(wins.sum())}.",
    ]
    for omega in theory["omega"].values:
        row = wins.sel(omega=omega)
        if bool(row.any()):
            first = float(theory["alpha"].values[row.values][0])
            lines.append(
                f"omega = {omega:g}: mixed is the lowest from alpha = {first:g} of the grid on."
            )
    both = (runs["theta"] > 0.02) & (runs["m"] > 0.05)
    share = float(both.sel(start="semantic").mean())
    lines.append(
        f"Trained at d = {runs.attrs['d']}: {100 * share:.0f}% of the runs from the semantic start "
        "end with both overlaps (theta above .02, m above .05)."
    )
    return lines


ITEM = Item(
    title="A student of rank two",
    compute=compute,
    draw=draw,
    compare=compare,
    remarks=remarks,
    sizes={
        "quick": {
            "alphas": [0.5, 1.0, 1.5, 2.0], "omegas": [0.1, 0.3, 0.5], "points": 12, "d": 100,
            "seeds": 2, "trained_alphas": [0.5, 1.0, 1.5, 2.0], "trained_omegas": [0.1, 0.3, 0.5],
        },
        "full": {
            "alphas": np.round(np.linspace(0.2, 2.0, 10), 4).tolist(),
            "omegas": np.round(np.linspace(0, 0.5, 6), 4).tolist(), "points": 14, "d": 1000,
            "seeds": 2, "trained_alphas": np.round(np.linspace(0.2, 2.0, 16), 4).tolist(),
            "trained_omegas": np.round(np.linspace(0, 0.5, 11), 4).tolist(),
        },
    },
)  # fmt: skip
