"""The histogram task after the constraint is lifted: distances, and the loss in between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dotphase import plot
from dotphase.histogram import Experiment
from reproduction.counting import SIZES, counting_networks
from reproduction.facts import facts
from reproduction.item import Datasets, Item
from reproduction.rows import over_runs
from reproduction.store import Parts
from reproduction.verdict import Row, against_runs

#: Published epochs, before and after the release; distances depend on them.
EPOCHS = (200, 100)


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """The networks of the item `histogram`, released from their constraint."""
    return {"experiment": counting_networks(parts, sizes)}


def draw(datasets: Datasets) -> Any:
    """Distances of every run, and the loss on the line between the two mechanisms."""
    result: Experiment = datasets["experiment"]
    figures = {"": plot.histogram_distances(result)}
    if result.landscape is not None:
        figures["landscape"] = plot.histogram_landscape(result.landscape)
    return figures


def _distances(result: Experiment, mechanism: str) -> dict[str, np.ndarray]:
    rows, distances = result.rows(mechanism), result.distances
    if distances.summed_after_release is None:
        raise ValueError("the networks were not released")
    return {
        "after release": distances.summed_after_release[rows],
        "from initialisation": distances.summed_from_start[rows],
    }


def compare(datasets: Datasets) -> list[Row]:
    """Compare distances if training was as long as published."""
    result: Experiment = datasets["experiment"]
    settings = result.settings
    as_long = (settings.epochs, settings.release_epochs) == EPOCHS
    if not as_long or settings.target is not None:
        return []
    rows = []
    for fact in facts("histogram_distance"):
        values = _distances(result, fact.at["mechanism"])[fact.quantity]
        mean, error = over_runs(values)
        # The comparison must distinguish a moved network from one that stayed.
        spread = error * math.sqrt(len(values))
        rows.append(against_runs(fact, mean, error, spread, tolerance=fact.value / 4))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Accuracies after the release, and the barrier between the mechanisms."""
    result: Experiment = datasets["experiment"]
    lines = [
        f"Released and trained on by SGD for {result.settings.release_epochs} epochs. As "
        "published, distances add up those of the parameter arrays."
    ]
    for name, statistics in result.summary().items():
        distances = _distances(result, name)
        ratio = 100 * float(np.mean(distances["after release"] / distances["from initialisation"]))
        lines.append(
            f"{name}: the release moves it by {ratio:.2f}% of the distance from its "
            f"initialization, accuracy {statistics['accuracy']['mean']:.5f} before and "
            f"{statistics['accuracy_after_release']['mean']:.5f} after the release; Euclidean "
            f"distance moved {statistics['distance_after_release']['mean']:.3f}, from the "
            f"initialization {statistics['distance_from_start']['mean']:.1f}."
        )
    if result.landscape is not None:
        lines.append(
            "Loss on the straight line between the two solutions: a barrier of "
            f"{result.landscape.barrier:.2f}, {result.landscape.aligned_barrier:.2f} after hidden "
            "units are matched."
        )
    return lines


ITEM = Item(
    "The histogram task: release from the constraint", compute, draw, compare, SIZES, remarks
)
