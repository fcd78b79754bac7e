"""Limits with a known answer, compared with the solver."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from dotphase import positional_semantic, solve
from dotphase.analysis import gauss_hermite, linear_test_error
from dotphase.results import Solution, provenance

COLUMNS = ("expected", "found", "stderr")
NUMBERS = ("V", "theta", "q", "test_error", "train_loss")


def paper_limits(log2_points: int = 14) -> xr.Dataset:
    """Expected and solved values of the limits of the paper's model.

    Without data ``V = sigma^2/ridge``. With many data and omega = 0 the student is the teacher,
    ``theta = sigma^2``; at omega = .3 it is c Q* with the c of least test error. At omega = 1
    labels are linear in the tokens, and the linear layer has no error. For small tokens, with a
    ridge of order sigma^2, the fields vanish and m minimizes a function of one variable.
    """
    sigma, small_sigma, strength, alpha = 0.5, 0.003, 0.04, 1.5
    # V approaches its limit as sqrt(alpha), through the jumps of the proximal map.
    no_data = solve(positional_semantic(), 1e-6, "uninformed", log2_points=log2_points)
    semantic = solve(positional_semantic(omega=0.0), 1e4, "semantic", log2_points=log2_points)
    mixed = solve(positional_semantic(), 1e4, "semantic", log2_points=log2_points)
    small_tokens = positional_semantic(sigma=small_sigma, ridge=strength * small_sigma**2)
    positional = solve(small_tokens, alpha, "positional", log2_points=log2_points)
    linear = linear_test_error(positional_semantic(omega=1.0))
    rows = [
        _row("V, alpha to 0", sigma**2 / 0.01, no_data, "V"),
        _row("theta, alpha to infinity, omega = 0", sigma**2, semantic, "theta"),
        _row("theta, alpha to infinity, omega = .3", sigma**2 * _best_scale(), mixed, "theta"),
        _row("m, sigma to 0", _small_token_overlap(alpha, strength), positional, "m"),
        ("error of the linear layer, omega = 1", 0.0, linear, 0.0),
    ]
    names, *columns = zip(*rows, strict=True)
    return xr.Dataset(
        {name: ("limit", list(values)) for name, values in zip(COLUMNS, columns, strict=True)},
        coords={"limit": list(names)},
        attrs=provenance(log2_points=log2_points),
    )


def _row(
    name: str, expected: float, solution: Solution, quantity: str
) -> tuple[str, float, float, float]:
    """One limit; NaN for a solution that has not converged."""
    value = solution.norms[quantity] if solution.converged else np.nan
    return name, float(expected), float(value), float(solution.stderr[quantity])


def _best_scale() -> float:
    """The c at which c Q* has the least test error, by Gauss-Hermite quadrature."""
    omega, sigma = 0.3, 0.5
    points, weight = gauss_hermite(40, 2)
    h = sigma * points.T

    def attention(h: np.ndarray) -> np.ndarray:
        """First entries of both rows of softmax(h h^T); each row sums to one."""
        gap = h * (h[:, ::-1] - h)
        return 1 / (1 + np.exp(gap))

    target = (1 - omega) * attention(h) + omega * 0.6

    def error(c: float) -> float:
        return float(weight @ np.sum((target - attention(c * h)) ** 2, axis=1))

    options = {"xatol": 1e-8}
    return float(minimize_scalar(error, bounds=(0.3, 1.5), method="bounded", options=options).x)


def _small_token_overlap(alpha: float, strength: float) -> float:
    """The m that minimizes ``2 alpha (s(2 m^2) - T_11)^2 + strength m^2/2``, ``T_11 = .53``."""

    def energy(m: float) -> float:
        return 2 * alpha * (1 / (1 + np.exp(-2 * m**2)) - 0.53) ** 2 + strength * m**2 / 2

    options = {"xatol": 1e-9}
    return float(minimize_scalar(energy, bounds=(0.02, 1.0), method="bounded", options=options).x)
