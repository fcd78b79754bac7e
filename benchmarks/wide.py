"""Wide attention against released tables and trained students; draws the figure of its page.

    python benchmarks/wide.py [--train D]

reads ``docs/data/wide-released.csv.gz``, adds the Bayes line of this package to every row, and
``docs/data/wide-trained.csv``, whose students have the seeds of ``dp.wide.train``; writes the
summary ``docs/data/wide.json`` and ``docs/images/wide.png``. With ``--train`` the students at
dimension D are trained again (minutes at D = 100; at D = 200 use a GPU). The released tables
(alpha, mmse, spread) are those of FabrizioBoncoraglio/BO_ExtensiveRankAttention, arXiv:2506.01582.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dotphase as dp
from dotphase.figures.parts.style import theme

DOCS = Path(__file__).resolve().parents[1] / "docs"
RELEASED, TRAINED = DOCS / "data/wide-released.csv.gz", DOCS / "data/wide-trained.csv"
QUANTITIES = ("train_loss", "test_error", "q", "m", "trace", "shift")
CASE = ["rho", "omega", "ridge", "alpha"]
#: Case of the spectrum in the figure: a student of TRAINED.
DRAWN = {"alpha": 0.7, "rho": 0.5, "ridge": 0.1}


def released() -> list[dict[str, Any]]:
    """Add the Bayes line to the released rows, and summarize each table."""
    table = pd.read_csv(RELEASED)
    lines = [
        dp.wide.bayes(alpha=row.alpha, rho=row.rho, length=row.tokens).mmse
        for row in table.itertuples()
    ]
    table["bayes"] = np.round(lines, 9)
    table.to_csv(RELEASED, index=False, compression={"method": "gzip", "mtime": 0})
    summary = []
    for (learner, tokens, rho), rows in table.groupby(["learner", "tokens", "rho"]):
        difference = rows["mmse"] - rows["bayes"]
        worst = difference.abs().idxmax()
        exact = dp.wide.recovery(rho=rho, length=tokens).bayes
        # Single spreads: the released means are over the number of data sets named in the table.
        scores = (difference / rows["spread"])[rows["alpha"] < 0.95 * exact]
        inner = difference[(rows["alpha"] > 0.02 * exact) & (rows["alpha"] < 0.95 * exact)]
        summary.append({
            "learner": learner, "tokens": tokens, "rho": rho, "rows": len(rows),
            "recovery": exact, "largest": difference[worst], "at": rows["alpha"][worst],
            "typical": difference.abs().median(), "inner": inner.abs().max(),
            "lowest": difference.min(), "lowest_score": scores.min(),
            "median_score": scores.median(),
            "first": [rows["mmse"].iloc[0], rows["bayes"].iloc[0]],
            "last": [rows["mmse"].iloc[-1], rows["bayes"].iloc[-1]],
        })  # fmt: skip
    return summary


def trained() -> Iterator[dict[str, Any]]:
    """Theory and means over students at both sizes, and their extrapolation in 1/d."""
    for case, rows in pd.read_csv(TRAINED).groupby(CASE):
        values = dict(zip(CASE, case, strict=True))
        theory = dp.wide.solve(**values)
        small, large = (group for _, group in rows.groupby("d"))
        for name in QUANTITIES:
            a, b = ((x[name].mean(), x[name].std() / np.sqrt(len(x))) for x in (small, large))
            ratio = large["d"].iloc[0] / small["d"].iloc[0]
            limit = (ratio * b[0] - a[0]) / (ratio - 1)
            error = np.hypot(ratio * b[1], a[1]) / (ratio - 1)
            yield values | {
                "quantity": name, "theory": getattr(theory, name), "small": a, "large": b,
                "limit": [limit, error],
            }  # fmt: skip


def train(d: int) -> None:
    """Train the students of one dimension again, with the same seeds."""
    table = pd.read_csv(TRAINED)
    for case, rows in table[table["d"] == d].groupby(CASE):
        runs = dp.wide.train(d=d, seeds=len(rows), **dict(zip(CASE, case, strict=True)))
        for name in (*QUANTITIES, "rank"):
            table.loc[rows.index, name] = getattr(runs, name)
        print(case, runs, flush=True)
    table.to_csv(TRAINED, index=False, float_format="%.8g")


def draw() -> None:
    """Draw the spectrum of one student beside the theory, and the onset."""
    runs = dp.wide.train(d=100, seeds=2, **DRAWN)
    diagram = dp.wide.phase_diagram(np.linspace(0, 0.95, 20), [0.01, 0.03, 0.1, 0.3], rho=0.5)
    for shade, suffix in (("light", ""), ("dark", "-dark")):
        with theme(shade):
            path = DOCS / f"images/wide{suffix}.png"
            dp.plot.wide(runs.eigenvalues, dp.wide.solve(**DRAWN), diagram, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, metavar="D", default=None)
    dimension = parser.parse_args().train
    if dimension:
        train(dimension)
    students = list(trained())
    losses = [row for row in students if row["quantity"] != "shift"]
    scores = [(row["limit"][0] - row["theory"]) / row["limit"][1] for row in losses]
    overall = {
        "comparisons": len(scores),
        "rms": float(np.sqrt(np.mean(np.square(scores)))),
        "largest": float(np.max(np.abs(scores))),
    }
    result = {"released": released(), "trained": students, "scores": overall}
    text = json.dumps(result, indent=1, default=float)
    (DOCS / "data/wide.json").write_text(text + "\n", encoding="utf-8")
    draw()
