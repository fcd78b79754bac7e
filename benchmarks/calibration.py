"""Are the standard errors of the theory right? Solutions of many seeds beside what each claims.

    python benchmarks/calibration.py

For every case and quantity: the spread of the solutions with other Gaussian points over the
standard error that they give (root mean square). 1 is right, above 1 too bold; with 20 seeds 95%
of right ones lie between .68 and 1.31. Kept for the benchmark page (`make bench`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import dotphase as dp

DATA = Path(__file__).parent / "data" / "calibration.json"
SEEDS = 20
#: Model, alpha, branch, settings.
CASES: dict[str, tuple[dp.Model, float, str, dict[str, Any]]] = {
    "paper, semantic, 2^13": (dp.positional_semantic(), 2.0, "semantic", {"log2_points": 13}),
    "paper, semantic": (dp.positional_semantic(), 2.0, "semantic", {}),
    "paper, positional, 2^13": (dp.positional_semantic(), 1.0, "positional", {"log2_points": 13}),
    "paper, positional": (dp.positional_semantic(), 1.0, "positional", {}),
    "three tokens": (dp.positional_semantic_length(3), 1.5, "semantic", {}),
    "six tokens": (dp.positional_semantic_length(6), 1.0, "semantic", {"log2_points": 13}),
    "logistic": (dp.load_model("logistic"), 2.0, "semantic", {}),
}


def spread(case: str) -> dict[str, float]:
    """Spread over claimed error of every quantity of a case."""
    model, alpha, branch, settings = CASES[case]
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(1, SEEDS + 1):
        solution = dp.solve(model, alpha, branch, seed=seed, **settings)
        if not solution.found:
            raise SystemExit(f"{case}, seed {seed}: {solution.message}")
        errors = solution.stderr
        for key, value in {**solution.norms, "train_loss": solution.train_loss,
                           "test_error": solution.test_error}.items():  # fmt: skip
            if key in errors:
                found.setdefault(key, []).append((value, errors[key]))
    ratios = {}
    for key, pairs in found.items():
        values, errors = np.array(pairs).T
        if np.all(errors > 0):
            ratios[key] = float(values.std(ddof=1) / np.sqrt(np.mean(errors**2)))
    return ratios


def main() -> None:
    rows = {}
    for case in CASES:
        rows[case] = spread(case)
        print(f"{case}: " + ", ".join(f"{k} {v:.2f}" for k, v in rows[case].items()), flush=True)
    DATA.write_text(json.dumps({"seeds": SEEDS, "spread": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
