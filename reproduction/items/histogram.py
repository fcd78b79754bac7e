"""The histogram task: accuracies, attention maps and learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dotphase import plot
from dotphase.histogram import Experiment, attention
from reproduction.counting import SIZES, counting_networks
from reproduction.facts import facts
from reproduction.item import Datasets, Item
from reproduction.rows import over_runs
from reproduction.store import Parts
from reproduction.verdict import UNDECIDED, Row, against_runs, within_range

#: The sequence whose attention was published.
SEQUENCE = "BBCCDDBBBB"


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Trained networks of both mechanisms."""
    return {"experiment": counting_networks(parts, sizes)}


def draw(datasets: Datasets) -> Any:
    """Attention for three sequences, and learning curves."""
    result: Experiment = datasets["experiment"]
    networks = {name: result.network(name) for name in ("positional", "semantic")}
    return {
        "attention": plot.histogram_attention(networks),
        "curves": plot.histogram_curves(result),
    }


def compare(datasets: Datasets) -> list[Row]:
    """Accuracies and the weights on the published sequence."""
    result: Experiment = datasets["experiment"]
    rows = []
    for fact in facts("histogram_accuracy"):
        values = result.trained.final_accuracy[result.rows(fact.at["mechanism"])]
        mean, error = over_runs(values)
        # A single run has no spread: use the published one.
        error = error if values.size > 1 else fact.spread or 0.0
        # An error rate of half a percent more matters.
        spread = float(np.std(values))
        rows.append(against_runs(fact, mean, error, spread, tolerance=0.005, share=0.0))
    for fact in facts("histogram_attention"):
        shares = published_shares(result, fact.at["mechanism"])[fact.quantity]
        # The published shares are of one network, so the spread over runs is the error.
        mean, error = over_runs(shares)
        spread = max(error * np.sqrt(shares.size), 0.0)
        row = within_range(fact, mean, spread, alternative=1 / len(SEQUENCE))
        if shares.size == 1:
            row = replace(row, verdict=UNDECIDED, why="one network; others differ by more")
        rows.append(row)
    return rows


def published_shares(result: Experiment, mechanism: str) -> dict[str, np.ndarray]:
    """Mean weights on the published sequence for each run, under their published names."""
    count = len(result.rows(mechanism))
    maps = np.stack([attention(result.network(mechanism, run), SEQUENCE) for run in range(count)])
    letters = np.array(list(SEQUENCE))
    diagonal = np.eye(len(letters), dtype=bool)
    same_letter = letters[:, None] == letters[None, :]
    is_b = (letters == "B")[:, None] & same_letter
    return {
        "diagonal": maps[:, diagonal].mean(axis=1),
        "off the diagonal": maps[:, ~diagonal].mean(axis=1),
        "B on each B": maps[:, is_b].mean(axis=1),
        "C on each C, D on each D": maps[:, same_letter & ~is_b].mean(axis=1),
    }


def remarks(datasets: Datasets) -> list[str]:
    """Sizes, time and the scores of the two mechanisms."""
    result: Experiment = datasets["experiment"]
    lines = [
        f"{result.runs} run(s) of each mechanism, at most {result.settings.epochs} "
        f"epochs, {result.trained.seconds_per_epoch:.2f} s per epoch for all of them on "
        f"{result.device}."
    ]
    for name, statistics in result.summary().items():
        lines.append(
            f"{name}: held-out accuracy {statistics['accuracy']['mean']:.5f}"
            + (
                f" ± {statistics['accuracy']['std']:.5f} (std)"
                if statistics["accuracy"]["std"]
                else ""
            )
            + f", positional score {statistics['positional_score']['mean']:.3f}, semantic score "
            f"{statistics['semantic_score']['mean']:.3f}."
        )
    return lines


ITEM = Item("The histogram task: attention and accuracy", compute, draw, compare, SIZES, remarks)
