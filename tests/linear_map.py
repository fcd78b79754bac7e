"""A linear fixed-point map with known answers, for tests of the solver's parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.expectations import Expectations
from dotphase.theory.fixed_point_map import FixedPointMap
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.settings import SolverSettings


class NoisyIdentity:
    """Averages whose mean is x, and x plus an offset in each scramble; it records its calls."""

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets
        self.calls: list[tuple[int, Any, int]] = []

    def expectations(
        self, x: np.ndarray, log2_points: int, seed: int, prox_states: Any, call: int
    ) -> Expectations:
        self.calls.append((log2_points, prox_states, call))
        return Expectations((x + self.offsets,), (x,), (f"states {len(self.calls)}",))


@dataclass(frozen=True, eq=False)
class LinearMap(FixedPointMap):
    """``F(x) = target + matrix (x - target)``, with a linear test error and free energy.

    Attributes
    ----------
    fixed : indices of fixed coordinates
    bound : largest admissible entry
    """

    matrix: np.ndarray
    target: np.ndarray
    gradient: np.ndarray
    offsets: np.ndarray
    fixed: tuple[int, ...] = ()
    bound: float = np.inf
    evaluator: NoisyIdentity = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evaluator", NoisyIdentity(self.offsets))

    def overlaps(self, x):
        return x

    def norms(self, x):
        return {"first": float(x[0])}

    def advance(self, x, averages):
        image = self.target + (averages[0] - self.target) @ self.matrix.T
        image[..., list(self.fixed)] = np.asarray(x)[list(self.fixed)]
        return image

    def free_energy(self, x, averages):
        return 2 * averages[0] @ self.gradient

    def test_error(self, averages):
        return averages[0] @ self.gradient

    def scale(self, x):
        return np.ones_like(x)

    def admissible(self, x):
        return bool(np.all(x <= self.bound))

    def free(self, x):
        return np.setdiff1d(np.arange(x.size), self.fixed)


def linear_map(eigenvalues=(0.5, -3.0, 0.9), **changes: Any) -> LinearMap:
    """A map with these eigenvalues, fixed point (1, 2, ...) and reproducible offsets."""
    rng = np.random.default_rng(3)
    size = len(eigenvalues)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    parameters = {
        "matrix": basis @ np.diag(eigenvalues) @ basis.T,
        "target": np.arange(1.0, size + 1),
        "gradient": rng.normal(size=size),
        "offsets": 0.01 * rng.normal(size=(N_SCRAMBLES, size)),
    }
    return LinearMap(None, 1.0, **(parameters | changes))


def evaluator_of(fixed_point_map: LinearMap, **settings: Any) -> PointEvaluator:
    """An evaluator of the map with fresh warm starts."""
    return PointEvaluator(fixed_point_map, SolverSettings(**settings), ProxWarmStart())
