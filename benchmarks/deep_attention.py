"""Deep attention: the Bayes-optimal learner against released tables, and students by theory.

    python benchmarks/deep_attention.py bayes TABLES        # overlaps, beside the released ones
    python benchmarks/deep_attention.py thresholds TABLES   # weak recovery against the skip
    python benchmarks/deep_attention.py students            # theory and trained students
    python benchmarks/deep_attention.py draw                # docs/images/deep-attention.png

Results go to docs/data/deep_attention.json. TABLES is a folder with the tables of
github.com/SPOC-group/SequenceIndexModels (arXiv:2502.00901).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dotphase as dp
from dotphase.numerics.fixed_point import fixed_point
from dotphase.runtime.precision import in_double_precision
from dotphase.theory import layered_posterior as layered

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "data" / "deep_attention.json"
#: Variance that the released programs add to the posterior's.
ADDED = 1e-3
#: Every how many rows of the table of three layers.
STRIDE = 4


def store(**parts: Any) -> None:
    """Merge results into the file."""
    known = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    text = json.dumps(known | parts, indent=1, allow_nan=False)
    DATA.write_text(text + "\n", encoding="utf-8")


@in_double_precision
def with_added_variance(model: dp.Model, alpha: float) -> list[float]:
    """Overlaps with a variance ``1 - M + ADDED`` of the fields, as in the released programs.

    The fields then have the variance ``1 + ADDED``, and the overlaps are measured in units of 1.
    """
    sigma = np.sqrt(1 + ADDED)
    sample = layered.Sample(model.replace(sigma=float(sigma)), 0, 0, layered.LOG2_SENTENCES - 1)

    def step(overlaps: np.ndarray) -> np.ndarray:
        s = alpha * np.maximum(sample.information(overlaps / sigma**2).gain, 0) / sigma**2
        return np.maximum(s / (1 + s), layered.FLOOR)

    start = np.full(model.teacher_rank, layered.INITIAL)
    point = fixed_point(
        step,
        start,
        lambda x: np.maximum(np.minimum(x, 1 - x), layered.LEAST),
        lambda x: bool(np.all((x >= layered.FLOOR) & (x <= 1))),
        layered.ITERATION,
    )
    return np.where(point.x > layered.LEAST, point.x, 0.0).tolist()


def bayes(tables: Path) -> None:
    """Overlaps at the sample complexities of the released tables."""
    for layers, stride in ((2, 1), (3, STRIDE)):
        model = dp.load_model("deep-attention", layers=layers)
        rows = []
        released = pd.read_csv(tables / f"sim_BO_{layers}w.csv").iloc[stride::stride]
        passing = pd.read_csv(tables / "sim_AMP_2w.csv") if layers == 2 else pd.DataFrame()
        grid = {round(float(a), 9) for a in [*released["alpha"], *passing.get("alpha", [])]}
        for alpha in sorted(grid):
            best = dp.bayes.optimal(model, alpha=alpha)
            row = best.to_dict() | {"added": with_added_variance(model, alpha)}
            for name, table, suffix in (("released", released, ""), ("amp", passing, "_mean")):
                match = table[np.isclose(table["alpha"], alpha)] if len(table) else table
                if len(match):
                    columns = [f"Q{k}{k}{suffix}" for k in range(1, layers + 1)]
                    row[name] = match[columns].iloc[0].tolist()
                    if suffix:
                        spread = [column.replace("mean", "std") for column in columns]
                        row["amp_std"] = match[spread].iloc[0].tolist()
            rows.append(row)
            print(layers, row, flush=True)
            store(**{f"bayes{layers}": rows})


def thresholds(tables: Path) -> None:
    """Weak recovery of both layers against the skip connection."""
    rows = []
    for skip, first, last in pd.read_csv(tables / "sim_alpha_critical.csv").to_numpy().tolist():
        model = dp.load_model("deep-attention", skip=skip)
        alphas, errors = dp.bayes.layer_thresholds(model, log2_sentences=10)
        rows.append({"skip": skip, "alphas": alphas, "stderr": errors, "released": [first, last]})
        print(rows[-1], flush=True)
        store(thresholds=rows)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"bayes": bayes, "thresholds": thresholds}[command](*map(Path, arguments))
