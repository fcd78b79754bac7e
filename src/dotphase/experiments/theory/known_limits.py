"""Limits in which the answer is known from somewhere else, beside what the solver gives."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from dotphase.model.linear_layer import linear_test_error
from dotphase.model.paper import positional_semantic
from dotphase.numerics.quadrature import gauss_hermite
from dotphase.storage.provenance import provenance
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve

COLUMNS = ("expected", "found", "stderr")
NUMBERS = ("V", "theta", "q", "test_error", "train_loss")


def paper_limits(log2_points: int = 14) -> xr.Dataset:
    """Limits of the paper's model: found by the solver, expected from elsewhere.

    ``without data``: V = sigma^2/ridge. ``many data``: at omega = 0 the student is the teacher,
    theta = sigma^2; at omega = .3 it is c Q* with c at the least test error. ``omega = 1``: labels
    are linear in the tokens, and the linear layer has no error. ``small tokens``: with the ridge
    of order sigma^2 the fields vanish and m minimises a function of one variable.
    """
    sigma, small, strength, alpha = 0.5, 0.003, 0.04, 1.5
    # V approaches its limit as sqrt(alpha), through the jumps of the proximal map.
    nothing = solve(positional_semantic(), 1e-6, "uninformed", log2_points=log2_points)
    same = solve(positional_semantic(omega=0.0), 1e4, "semantic", log2_points=log2_points)
    best = solve(positional_semantic(), 1e4, "semantic", log2_points=log2_points)
    light = positional_semantic(sigma=small, ridge=strength * small**2)
    tiny = solve(light, alpha, "positional", log2_points=log2_points)
    only = positional_semantic(omega=1.0)
    rows = [
        _row("V, alpha to 0", sigma**2 / 0.01, nothing, "V"),
        _row("theta, alpha to infinity, omega = 0", sigma**2, same, "theta"),
        _row("theta, alpha to infinity, omega = .3", sigma**2 * _best_scale(), best, "theta"),
        _row("m, sigma to 0", _small_tokens(alpha, strength), tiny, "m"),
        ("error of the linear layer, omega = 1", 0.0, linear_test_error(only), 0.0),
    ]
    names, *columns = zip(*rows, strict=True)
    return xr.Dataset(
        {name: ("limit", list(part)) for name, part in zip(COLUMNS, columns, strict=True)},
        coords={"limit": list(names)},
        attrs=provenance(log2_points=log2_points),
    )


def _row(
    name: str, expected: float, solution: Solution, quantity: str
) -> tuple[str, float, float, float]:
    # What has not converged does not count as found.
    value = solution.norms[quantity] if solution.converged else np.nan
    return name, float(expected), float(value), float(solution.stderr[quantity])


def _best_scale() -> float:
    """c at which c Q* has the least test error, by Gauss-Hermite quadrature."""
    omega, sigma = 0.3, 0.5
    points, weight = gauss_hermite(40, 2)
    h = sigma * points.T

    def attention(h: np.ndarray) -> np.ndarray:
        """First entries of both rows of softmax(h h^T); the others follow."""
        gap = h * (h[:, ::-1] - h)
        return 1 / (1 + np.exp(gap))

    target = (1 - omega) * attention(h) + omega * 0.6

    def error(c: float) -> float:
        return float(weight @ np.sum((target - attention(c * h)) ** 2, axis=1))

    found = minimize_scalar(error, bounds=(0.3, 1.5), method="bounded", options={"xatol": 1e-8})
    return float(found.x)


def _small_tokens(alpha: float, strength: float) -> float:
    """m that minimises ``2 alpha (s(2 m^2) - T_11)^2 + strength m^2/2``, ``T_11 = .53``."""

    def energy(m: float) -> float:
        return 2 * alpha * (1 / (1 + np.exp(-2 * m**2)) - 0.53) ** 2 + strength * m**2 / 2

    found = minimize_scalar(energy, bounds=(0.02, 1.0), method="bounded", options={"xatol": 1e-9})
    return float(found.x)
