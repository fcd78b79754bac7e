"""Beyond the paper: trained attention against the best that the data allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from dotphase import Model, plot, positional_semantic
from dotphase.bayes import alpha_of_overlap, transitions
from dotphase.bayes import optimal as bayes_optimal
from reproduction.item import Datasets, Item, evenly
from reproduction.rows import format_number, number
from reproduction.store import Parts
from reproduction.sweeps import theory_curve
from reproduction.verdict import Row, between_engines

OMEGA = 0.3
#: Alphas at which the overlap is compared with an average sampled from its definition.
CHECKED = (0.3, 0.45)


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Both branches, the Bayes-optimal line, and its overlap by two other methods."""
    model = positional_semantic(omega=OMEGA)
    optimal = parts.study("theory-bayes", "bayes", {"omega": OMEGA}, {"alpha": sizes["lines"]})
    weak, exact = transitions(model.length)
    return {
        "theory": theory_curve(parts, "theory", model, sizes),
        "theory-bayes": optimal.assign(weak_recovery_alpha=weak, exact_recovery_alpha=exact),
        "theory-checks": parts.call("theory-checks", _checks, model, samples=sizes["samples"]),
    }


def _checks(model: Model, samples: int) -> xr.Dataset:
    """Overlaps from sampled averages, and transitions from the equation alone."""
    rows = [_sampled(alpha, samples) for alpha in CHECKED]
    results = xr.Dataset(coords={"alpha": list(CHECKED)})
    results["overlap"] = ("alpha", [bayes_optimal(model, alpha).overlaps[0] for alpha in CHECKED])
    results["sampled"] = ("alpha", [row[0] for row in rows])
    results["sampled_stderr"] = ("alpha", [row[1] for row in rows])
    # Linear extrapolation of the fixed-point equation to both ends.
    results["weak"] = 2 * alpha_of_overlap(1e-3, 2) - alpha_of_overlap(2e-3, 2)
    results["exact"] = 2 * alpha_of_overlap(1 - 1e-3, 2) - alpha_of_overlap(1 - 2e-3, 2)
    return results


def _sampled(alpha: float, samples: int, groups: int = 8) -> tuple[float, float]:
    """Root of the Bayes-optimal equation with a sampled average, and its error over groups.

    The average over two tokens is four-dimensional; see `dotphase.theory.bayes` for the equation.
    """
    roots = []
    for group in range(groups):
        a, z = np.random.default_rng(group).normal(size=(2, samples, 2))

        def drive(M: float, a: Any = a, z: Any = z) -> float:
            x = np.sqrt(M) * a + np.sqrt(1 - M) * z
            guess = np.tanh(np.sqrt(M) * np.sum(a * x, axis=1) / (1 - M))
            miss = np.mean(np.sum((guess[:, None] * x - np.sqrt(M) * a) ** 2, axis=1))
            s = alpha * miss / (1 - M) ** 2
            return float(s / (1 + s) - M)

        roots.append(brentq(drive, 0.02, 0.99))
    return float(np.mean(roots)), float(np.std(roots, ddof=1) / np.sqrt(groups))


def draw(datasets: Datasets) -> Any:
    """Test errors of the branches, the linear layer and the Bayes-optimal learner."""
    return plot.bayes(datasets["theory"], datasets["theory-bayes"])


def compare(datasets: Datasets) -> list[Row]:
    """Overlaps by two quadratures, and the transitions against their closed forms."""
    checks, rows = datasets["theory-checks"], []
    for alpha in CHECKED:
        point, at = checks.sel(alpha=alpha), {"alpha": alpha}
        sampled, results = number(point, "sampled"), (float(point["overlap"]), 0.0)
        rows.append(between_engines("overlap M", at, sampled, results, "sampling", share=0.0))
    for name, exact in zip(("weak", "exact"), transitions(2), strict=True):
        at, pair = {"tokens": 2}, ((exact, 0.0), (float(checks[name]), 0.0))
        rows.append(between_engines(f"{name} recovery", at, *pair, "closed form", share=1e-3))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Distance of trained attention from the Bayes-optimal line."""
    theory, optimal = datasets["theory"], datasets["theory-bayes"]
    linear = float(theory["linear_test_error"])
    final = theory.sel(branch="semantic", alpha=theory["alpha"].max())
    point = optimal.sel(alpha=0.45, method="nearest")
    return [
        f"At alpha = {float(point['alpha']):.3g} the Bayes-optimal test error is "
        f"{format_number(number(point, 'test_error'), 6)}; it vanishes "
        f"from alpha = 1/2 on. The linear layer has {linear:.6f}.",
        f"The semantic minimum still has {format_number(number(final, 'test_error'), 6)} "
        f"at alpha = {float(final['alpha']):g}.",
    ]


SIZES = {
    "quick": {
        "alphas": evenly(0.4, 2.0, 5), "rtol": 5e-2, "max_log2_points": 12,
        "lines": evenly(0.05, 2.0, 40), "samples": 20_000,
    },
    "full": {
        "alphas": evenly(0.1, 2.0, 20), "rtol": 1e-2, "max_log2_points": 15,
        "lines": evenly(0.02, 2.0, 100), "samples": 400_000,
    },
}  # fmt: skip
ITEM = Item("The Bayes-optimal line", compute, draw, compare, SIZES, remarks)
