"""Fixed points of maps with known answers, noise, jumps and domains."""

import numpy as np
import pytest

from dotphase.numerics.fixed_point import Iteration, Outcome, fixed_point


def _solve(function, initial, settings=None):
    """The fixed point of a map, and the points at which it was evaluated."""
    points = []

    def evaluate(x):
        points.append(x)
        return np.asarray(function(x), dtype=float)

    result = fixed_point(
        evaluate,
        np.asarray(initial, dtype=float),
        lambda x: np.full(x.size, max(np.linalg.norm(x), 1e-3)),
        lambda x: True,
        settings or Iteration(),
    )
    return result, points


@pytest.mark.parametrize("slope", [-5.0, -0.98, 0.3, 0.97])
def test_linear_maps_with_any_slope_are_solved(slope):
    result, _ = _solve(lambda x: 1 + slope * (x - 1), [1.3])
    assert result.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.x, 1.0, atol=1e-4)


def test_several_slopes_at_once(rng):
    basis, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    matrix = basis @ np.diag([-4.0, -0.9, 0.5, 0.95]) @ basis.T
    target = np.array([1.0, 2.0, 3.0, 4.0])
    result, points = _solve(lambda x: target + matrix @ (x - target), target + 0.3)
    assert result.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.x, target, rtol=1e-4)
    assert len(points) < 60


def test_the_returned_point_was_measured_and_carries_its_own_residual():
    def function(x):
        return 0.5 * np.cos(x)

    result, points = _solve(function, [0.2, 0.9])
    assert any(np.array_equal(result.x, x) for x in points)
    np.testing.assert_array_equal(result.image, function(result.x))
    size = np.max(np.abs(function(result.x) - result.x)) / max(np.linalg.norm(result.x), 1e-3)
    np.testing.assert_allclose(result.residual, size)
    assert result.residual <= 1e-6


def test_it_stays_with_the_nearest_of_two_fixed_points():
    # x = 1 and x = 3 attract, x = 2 repels; a long jump would end at the wrong one.
    def function(x):
        return x - 0.3 * (x - 1) * (x - 2) * (x - 3)

    low, _ = _solve(function, [1.7])
    high, _ = _solve(function, [2.3])
    np.testing.assert_allclose(low.x, 1, rtol=1e-4)
    np.testing.assert_allclose(high.x, 3, rtol=1e-4)


def test_noise_is_recognized_as_a_floor(rng):
    def noisy(x):
        return 1 - 0.5 * (x - 1) + 1e-4 * rng.standard_normal(x.size)

    result, _ = _solve(noisy, [1.4, 0.7], Iteration(tolerance=1e-9, floor=1e-3))
    assert result.outcome is Outcome.NOISE_FLOOR
    assert result.outcome.success
    assert result.residual < 1e-3
    strict, _ = _solve(noisy, [1.4, 0.7], Iteration(tolerance=1e-9, floor=1e-9))
    assert not strict.outcome.success


def test_a_map_without_fixed_point_ends_without_success():
    def jump(x):
        return np.where(x > 1, 0.5, 1.5)

    result, _ = _solve(jump, [1.2], Iteration(floor=1e-3))
    assert result.outcome in (Outcome.CYCLE, Outcome.STEPS)
    assert not result.outcome.success


def test_nan_and_inadmissible_images_are_stepped_back_from():
    def function(x):
        return np.where(np.abs(x - 1) > 0.45, np.nan, 1 - 3.0 * (x - 1))

    result, _ = _solve(function, [1.4])
    assert result.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.x, 1, rtol=1e-5)


def test_nan_everywhere_is_a_failure_not_a_number():
    result, points = _solve(lambda x: np.full_like(x, np.nan), [1.0])
    assert result.outcome is Outcome.LEFT_DOMAIN
    assert result.residual == np.inf
    assert len(points) == 1


def test_the_limit_of_evaluations_is_respected():
    result, points = _solve(lambda x: x + 1.0, [1.0], Iteration(max_steps=17, anderson_depth=0))
    assert len(points) == 17
    assert not result.outcome.success
