"""Wide attention against released tables and trained students; draws the figure of its page.

    python benchmarks/wide.py [--train D]

    python benchmarks/wide.py --page

reads ``docs/data/wide-released.csv.gz``, adds the Bayes line of this package to every row, and
``docs/data/wide-trained.csv``, whose students have the seeds of ``dp.wide.train``, and some
released rows for hardmax labels, ``docs/data/wide-hardmax.csv``; writes the
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
from scipy.stats import multivariate_normal, norm

import dotphase as dp
from dotphase.extensive.bayes import denoising_error
from dotphase.figures.parts.style import theme

DOCS = Path(__file__).resolve().parents[1] / "docs"
RELEASED, TRAINED = DOCS / "data/wide-released.csv.gz", DOCS / "data/wide-trained.csv"
HARDMAX = DOCS / "data/wide-hardmax.csv"
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


def hardmax() -> list[dict[str, float]]:
    """Bayes-optimal errors for labels that are the larger score of each row, two tokens.

    Each row is computed with the derivative of the probability of a label, and with the joint
    density of the two differences of scores in its place.
    """
    rows = pd.read_csv(HARDMAX).to_dict("records")
    for row in rows:
        for name in ("ours", "density"):
            error, previous = 1 - 1e-9, 2.0
            while abs(error - previous) > 1e-7:
                snr = row["alpha"] * hardmax_force(1 + row["rho"], error, name == "ours")
                error, previous = denoising_error(snr, row["rho"]), error
            row[name] = error
    return rows


def hardmax_force(Q: float, error: float, exact: bool, nodes: int = 40) -> float:
    """Mean of ``sum_ab D_ab g_ab^2``, g the derivative of the log probability of a label.

    The differences ``h_11 - h_12`` and ``h_22 - h_12`` have variances 3 and covariance 1, times q
    for the estimates and times the error for the rest.
    """
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    first, second = (grid.ravel() for grid in np.meshgrid(x, x))
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    scale, total = np.sqrt((Q - error) / error), 0.0
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        c = signs[0] * signs[1] / 3
        k1 = signs[0] * scale * first
        k2 = signs[1] * scale * (first / 3 + np.sqrt(8 / 9) * second)
        joint = multivariate_normal([0, 0], [[1, c], [c, 1]])
        points = np.stack([k1, k2], axis=1)
        probability = np.maximum(joint.cdf(points), 1e-13)
        slopes = [joint.pdf(points)] * 2
        if exact:
            slopes = [norm.pdf(a) * norm.cdf((b - c * a) / np.sqrt(1 - c**2))
                      for a, b in ((k1, k2), (k2, k1))]  # fmt: skip
        g1, g2 = (s * slope / probability for s, slope in zip(signs, slopes, strict=True))
        total += weights @ (probability * (2 * g1**2 + 2 * g2**2 + (g1 + g2) ** 2))
    return float(total / (3 * error))


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


HEAD = """# Wide attention: agreement with released numbers and training

Written by `python benchmarks/wide.py`. Explanation: [Wide attention](wide-attention.md).

## Released tables

Squared error per dimension of the estimate of the teacher's matrix, minus our Bayes-optimal line, for every row of the tables of
FabrizioBoncoraglio/BO_ExtensiveRankAttention ([arXiv:2506.01582](https://arxiv.org/abs/2506.01582)); all rows are in `docs/data/wide-released.csv.gz`. SE: their Bayes-optimal state evolution. AMP: message
passing. GD: gradient descent at d = 200, means of 32. "Inside": between 2% and 95% of the recovery threshold.

| table | tokens | rho | rows | recovery | largest difference | at alpha | typical (median) | largest inside | median in spreads |
|---|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501
MIDDLE = """
The largest differences of SE are those of its first and last rows: next to alpha = 0 it exceeds 1, the error of the prior's mean, and at exact recovery it is positive. At rho = .1 single rows
near alpha = .035 leave its curve. AMP and GD are measured learners, not Bayes-optimal lines: both lie above our line at every row.

| table | rho | first row: released | ours | last row: released | ours |
|---|---|---|---|---|---|
"""  # noqa: E501
SIGNS = """
## Hardmax labels

Two tokens; the label is the larger score of each row. Our error uses the derivative of the probability of a label. With the joint density of the two differences of scores in its place, as in the
released `SE_hardmax.py`, we obtain the released numbers, which are therefore too high.

| rho | alpha | released | ours | ours, with the density |
|---|---|---|---|---|
"""  # noqa: E501
STUDENTS = """
## Trained students

Means over 6 students at d = 100 and 4 at d = 200, with standard errors, full batch, rho = .5, two tokens, and their linear extrapolation in 1/d. The shift converges as the inverse square root of d.

| omega | ridge | alpha | quantity | theory | d = 100 | d = 200 | extrapolated | standard errors |
|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501


def write_page(result: dict[str, Any]) -> None:
    """Write the research note with all tables."""

    def line(*cells: Any) -> str:
        return (
            "| "
            + " | ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in cells)
            + " |\n"
        )

    text = HEAD
    tables = result["released"]
    for row in tables:
        names = ("learner", "tokens", "rho", "rows", "recovery", "largest", "at", "typical",
                 "inner", "median_score")  # fmt: skip
        score = "" if np.isnan(row["median_score"]) else row["median_score"]
        text += line(*(row[name] for name in names[:-1]), score)
    text += MIDDLE
    for row in tables:
        if row["learner"] == "SE":
            text += line("SE", row["rho"], *row["first"], *row["last"])
    text += SIGNS
    for row in result["hardmax"]:
        text += line(*row.values())
    text += STUDENTS
    for row in result["trained"]:
        if row["quantity"] == "shift" and not row["omega"]:
            continue
        means = [dp.results.format_value(*row[name]) for name in ("small", "large", "limit")]
        score = (row["limit"][0] - row["theory"]) / row["limit"][1]
        case = (row[name] for name in ("omega", "ridge", "alpha", "quantity", "theory"))
        text += line(*case, *means, f"{score:.1f}")
    (DOCS / "research-notes/wide-agreement.md").write_text(text, encoding="utf-8")


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
    parser.add_argument("--page", action="store_true", help="Only write the page again.")
    parser.add_argument("--train", type=int, metavar="D", default=None)
    options = parser.parse_args()
    if options.page:
        write_page(json.loads((DOCS / "data/wide.json").read_text(encoding="utf-8")))
        raise SystemExit
    if options.train:
        train(options.train)
    students = list(trained())
    losses = [row for row in students if row["quantity"] != "shift"]
    scores = [(row["limit"][0] - row["theory"]) / row["limit"][1] for row in losses]
    overall = {
        "comparisons": len(scores),
        "rms": float(np.sqrt(np.mean(np.square(scores)))),
        "largest": float(np.max(np.abs(scores))),
    }
    result = {"released": released(), "hardmax": hardmax(), "trained": students, "scores": overall}
    write_page(result)
    text = json.dumps(result, indent=1, default=float)
    (DOCS / "data/wide.json").write_text(text + "\n", encoding="utf-8")
    draw()
