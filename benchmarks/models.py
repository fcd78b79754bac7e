"""Named models solved and trained: the theory beside students at finite dimension.

    python benchmarks/models.py theory LABEL ALPHA
    python benchmarks/models.py train LABEL ALPHA
    python benchmarks/models.py table
    python benchmarks/models.py population

A label is one of `CASES`. The first two write into out/models, so that points can run side by
side; `table` prints what is there. A row agrees if training loss, test error, theta and m, as far
as they are there, are within three combined standard errors. `population` prints the risks of
single-location regression at infinitely many samples. Without arguments everything is done in
turn.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dotphase as dp

PARTS = Path(__file__).resolve().parents[1] / "out" / "models"
SHOWN = ("train_loss", "test_error", "theta", "m")
#: Overlaps of the theory below this are none.
VANISHES = 1e-6


@dataclass(frozen=True)
class Case:
    """A model, where to look at it, and how large its students are."""

    model: str
    start: str
    alphas: tuple[float, ...]
    d: int = 800
    seeds: int = 12
    log2_points: int = 15
    given: dict[str, Any] = field(default_factory=dict)


#: Single-location regression, and sparse tokens, for students that read in different ways.
LOCATION: dict[str, Any] = {"strength": 4.0, "length": 3, "ridge": 0.3}
SPARSE: dict[str, Any] = {"strength": 9.0, "length": 3, "ridge": 0.5}

CASES = {
    "location-attention": Case("single-location", "mixed", (4, 8, 16), given=LOCATION),
    "location-linear": Case(
        "single-location", "mixed", (4, 8, 16), given=LOCATION | {"pooling": "linear"}
    ),
    "location-mean": Case(
        "single-location", "semantic", (4, 16), given=LOCATION | {"pooling": "mean"}
    ),
    "sparse-attention": Case("sparse-token", "positional", (2, 6), given=SPARSE),
    "sparse-mean": Case("sparse-token", "positional", (2, 6), given=SPARSE | {"pooling": "mean"}),
    "committee": Case(
        "committee", "semantic", (4, 8), given={"sigma": 3.0, "ridge": 0.1, "noise": 0.1}
    ),
    "temperature": Case(
        "attention-temperature", "semantic", (1.5, 3), seeds=24, given={"beta": 2.0}
    ),
}


def build(case: Case) -> dp.Model:
    """The model of a case."""
    return dp.load_model(case.model, **case.given)


def solve(case: Case, alpha: float) -> dict[str, Any]:
    """What the theory says, and whether it is to be trusted."""
    found = dp.solve(build(case), alpha, case.start, log2_points=case.log2_points)
    # At the d of the students, where the terms of order 1/d are known.
    values = found.at(case.d) if found.model.plain else found
    return {
        "value": {name: float(values.value(name)) for name in SHOWN},
        "stderr": {name: float(found.stderr[name]) for name in SHOWN},
        "found": found.found,
        "trusted": bool(found.stability.trusted),
        "reason": found.stability.reason,
        "m": np.asarray(found.overlaps.m).tolist(),
    }


def train(case: Case, alpha: float) -> dict[str, Any]:
    """What students have learned."""
    runs = dp.train(build(case), alpha, case.d, seeds=case.seeds, start=case.start)
    return {
        "value": {name: float(runs.mean[name]) for name in SHOWN},
        "stderr": {name: float(runs.stderr[name]) for name in SHOWN},
        "outcomes": sorted(set(map(str, runs.mechanisms))),
    }


def population(strength: float, length: int, seed: int = 0, count: int = 2**20) -> dict[str, float]:
    """Risks when teacher and mark are known: ``E sum_l (1[l = s] - w_l)^2`` of the best weights.

    Softmax of ``sqrt(strength) k.x`` is the posterior of the place, hence the Bayes risk. Weights
    ``c k.x`` have L/(strength + L) at best, equal weights 1 - 1/L.
    """
    field = np.random.default_rng(seed).standard_normal((count, length))
    field[:, 0] += np.sqrt(strength)
    weight = np.exp(np.sqrt(strength) * field)
    weight /= weight.sum(axis=1, keepdims=True)
    weight[:, 0] -= 1
    risk = np.sum(weight**2, axis=1)
    return {
        "attention": float(np.mean(risk)),
        "attention, standard error": float(np.std(risk) / np.sqrt(count)),
        "linear": length / (strength + length),
        "mean": 1 - 1 / length,
    }


def rows() -> list[str]:
    """The table of everything that is there."""
    names = {"train_loss": "training loss", "test_error": "test error"}
    titles = [f"{names.get(name, name)} | trained" for name in SHOWN]
    lines = [
        f"| model | alpha | d | {' | '.join(titles)} | | |",
        "|---" * (5 + 2 * len(SHOWN)) + "|",
    ]
    for label, case in CASES.items():
        for alpha in case.alphas:
            paths = [PARTS / f"{step}-{label}-{alpha:g}.json" for step in ("theory", "train")]
            if all(path.exists() for path in paths):
                lines.append(row(label, case, alpha, *(json.loads(p.read_text()) for p in paths)))
    return lines


def row(label: str, case: Case, alpha: float, theory: Any, trained: Any) -> str:
    """Theory and training of one point, side by side."""
    cells, fits = [], True
    for name in SHOWN:
        pair = [(part["value"][name], part["stderr"][name]) for part in (theory, trained)]
        cells += [f"{value:.4g} ± {error:.1g}" for value, error in pair]
        (a, da), (b, db) = pair
        # The norm of an overlap that vanishes is of order 1/sqrt d in a student.
        fits &= abs(a) < VANISHES or abs(a - b) <= 3 * np.hypot(da, db)
    verdict = "agrees" if fits else "differs"
    trusted = "trusted" if theory["trusted"] else "not trusted"
    return f"| {label} | {alpha:g} | {case.d} | {' | '.join(cells)} | {verdict} | {trusted} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", nargs="?", choices=("theory", "train", "table", "population"))
    parser.add_argument("label", nargs="?", choices=list(CASES))
    parser.add_argument("alpha", nargs="?", type=float)
    given = parser.parse_args()
    PARTS.mkdir(parents=True, exist_ok=True)
    steps = {"theory": solve, "train": train}
    for label in [given.label] if given.label else CASES:
        for alpha in [given.alpha] if given.alpha is not None else CASES[label].alphas:
            for step, compute in steps.items():
                if given.step in (None, step):
                    path = PARTS / f"{step}-{label}-{alpha:g}.json"
                    path.write_text(json.dumps(compute(CASES[label], alpha)))
    if given.step in (None, "table"):
        print("\n".join(rows()))
    if given.step in (None, "population"):
        print(population(LOCATION["strength"], LOCATION["length"]))


if __name__ == "__main__":
    main()
