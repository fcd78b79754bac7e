"""Pseudo-arclength continuation around a fold whose position is known."""

from dataclasses import dataclass

import numpy as np
import pytest

from dotphase.theory.arclength import ArclengthContinuation, find_fold
from dotphase.theory.expectations import Expectations
from dotphase.theory.fixed_point_map import FixedPointMap
from dotphase.theory.newton import measure_jacobian
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.quadrature_error import standard_error
from dotphase.theory.settings import SolverSettings

#: Offsets of alpha at the fold, one for each scramble.
OFFSETS = 0.01 * np.random.default_rng(5).normal(size=8)
SETTINGS = SolverSettings(log2_points=12)
#: Residual at which a point is solved; it is alpha itself here.
TOLERANCE = SETTINGS.iteration_on(12).tolerance


class Evaluator:
    """Averages of a map that needs none but the offsets."""

    def expectations(self, overlaps, log2_points, seed, prox_states=(), call=0):
        return Expectations(OFFSETS[:, None], OFFSETS.mean(keepdims=True), ())


@dataclass(frozen=True, eq=False)
class Folding(FixedPointMap):
    """Fixed points ``alpha = 2 + offset + (x_0 - 1)^2`` and ``x_1 = x_0``."""

    @property
    def evaluator(self):
        return Evaluator()

    def overlaps(self, x):
        return x

    def advance(self, x, averages):
        first = x[0] - (self.alpha - 2 - averages - (x[0] - 1) ** 2)
        second = np.broadcast_to((x[0] + x[1]) / 2, first.shape)
        return np.concatenate([first, second], axis=-1)

    def free_energy(self, x, averages):
        return 0.0

    def test_error(self, averages):
        return 0.0

    def scale(self, x):
        return np.asarray([1.0, 2.0])

    def admissible(self, x):
        return bool(np.all(np.isfinite(x)))


def curve_from(alpha, direction):
    x = 1 + np.sqrt(alpha - 2 - OFFSETS.mean()) * np.ones(2)
    evaluator = PointEvaluator(Folding(None, alpha), SETTINGS, ProxWarmStart())
    jacobian = measure_jacobian(evaluator, x, 12)
    return ArclengthContinuation(evaluator, x, jacobian, 12, direction)


@pytest.mark.parametrize("alpha", [2.1, 3.0, 5.0])
def test_the_fold_and_its_error_from_the_scrambles(alpha):
    fold = find_fold(curve_from(alpha, -1.0), 2.0)
    assert fold.alpha == pytest.approx(2 + OFFSETS.mean(), abs=TOLERANCE)
    assert fold.stderr == pytest.approx(standard_error(OFFSETS), rel=0.02)


def test_no_fold_in_the_other_direction_or_beyond_the_range():
    assert find_fold(curve_from(3.0, 1.0), 0.5) is None
    assert find_fold(curve_from(5.0, -1.0), 0.1) is None


def test_the_curve_turns_around():
    """Past the fold alpha rises again on the other side."""
    curve = curve_from(2.05, -1.0)
    point = curve.first
    alphas, positions = [], []
    for _ in range(8):
        point, _ = curve.step(point, 0.1)
        alphas.append(point.alpha)
        positions.append(point.evaluated.x[0])
    assert positions[0] > 1 > positions[-1]
    assert min(alphas) < 2.01 < alphas[-1]
    expected = 2 + OFFSETS.mean() + (np.asarray(positions) - 1) ** 2
    np.testing.assert_allclose(alphas, expected, atol=TOLERANCE)
