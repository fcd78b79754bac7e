"""Ridge, logistic and hinge regression: the theory beside scikit-learn's fits at finite dimension.

    python benchmarks/estimators.py [--d 1000] [--seeds 24] [--out FILE.md]

Training loss, test error and overlap with the teacher at five pairs (alpha, ridge) for each loss.
The teacher's weights have the length sqrt d exactly, so that fits differ by their data alone; test
errors follow from the fitted weights in closed form. A row agrees if all three numbers are
within three combined standard errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import dotphase as dp
from dotphase.model.named import MODELS

NOISE = 0.5
PAIRS = {
    "ridge-regression": [(0.5, 0.1), (1.0, 0.01), (1.0, 0.1), (1.5, 1.0), (2.0, 0.1)],
    "logistic": [(0.5, 0.1), (1.0, 0.01), (1.0, 0.1), (1.5, 1.0), (2.0, 0.1)],
    "hinge": [(0.5, 0.1), (1.0, 0.03), (1.0, 0.1), (1.5, 1.0), (2.0, 0.1)],
}


def fit(kind: str, x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights w = Q/sqrt d that minimise ``sum loss + (ridge d/2) |w|^2``."""
    strength = ridge * x.shape[1]
    exact: dict[str, Any] = {"fit_intercept": False, "tol": 1e-6, "max_iter": 200_000}
    if kind == "ridge-regression":
        estimator = Ridge(alpha=strength, fit_intercept=False, solver="cholesky")
    elif kind == "logistic":
        estimator = LogisticRegression(C=1 / strength, **exact)
    else:
        estimator = LinearSVC(loss="hinge", C=1 / strength, dual=True, random_state=0, **exact)
    return np.ravel(estimator.fit(x, y).coef_)


def measure(kind: str, alpha: float, ridge: float, d: int, seed: int) -> list[float]:
    """Training loss, test error and overlap of one fit."""
    rng = np.random.default_rng([seed, round(1000 * alpha), round(1000 * ridge)])
    n = round(alpha * d)
    teacher = rng.standard_normal(d)
    teacher /= np.linalg.norm(teacher)
    x = rng.standard_normal((n, d))
    field = x @ teacher + NOISE * rng.standard_normal(n)
    y = field if kind == "ridge-regression" else np.where(field < 0, -1.0, 1.0)
    w = fit(kind, x, y, ridge)
    answer, size, overlap = x @ w, np.sum(w**2), w @ teacher
    if kind == "ridge-regression":
        losses = 0.5 * (y - answer) ** 2
        error = 1 - 2 * overlap + size + NOISE**2
    else:
        margin = y * answer
        losses = np.logaddexp(0, -margin) if kind == "logistic" else np.maximum(0, 1 - margin)
        error = np.arccos(overlap / np.sqrt(size * (1 + NOISE**2))) / np.pi
    return [np.sum(losses) / d + 0.5 * ridge * size, error, overlap]


def row(kind: str, alpha: float, ridge: float, d: int, seeds: int) -> str:
    """One line of the table."""
    model = MODELS[kind].build(ridge=ridge, noise=NOISE)
    theory = dp.solve(model, alpha, rtol=3e-3)
    expected = [theory.train_loss, theory.test_error, theory.norms["theta"]]
    errors = [theory.stderr[name] for name in ("train_loss", "test_error", "theta")]
    fits = np.asarray([measure(kind, alpha, ridge, d, seed) for seed in range(seeds)])
    mean, spread = fits.mean(axis=0), fits.std(axis=0, ddof=1) / np.sqrt(seeds)
    apart = np.abs(mean - expected) / np.hypot(spread, errors)
    cells = [
        f"{value:.4f} ± {error:.4f} | {found:.4f} ± {own:.4f}"
        for value, error, found, own in zip(expected, errors, mean, spread, strict=True)
    ]
    verdict = "agrees" if apart.max() < 3 else f"differs by {apart.max():.1f} errors"
    return f"| {kind} | {alpha:g} | {ridge:g} | {' | '.join(cells)} | {verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        f"Theory and scikit-learn at d = {given.d}, {given.seeds} data sets each, noise {NOISE}.",
        "",
        "| loss | alpha | ridge | training loss | fits | test error | fits | theta | fits | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for kind, pairs in PAIRS.items():
        for alpha, ridge in pairs:
            lines.append(row(kind, alpha, ridge, given.d, given.seeds))
            print(lines[-1], flush=True)
    if given.out is not None:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
