"""Falls and rises through zero of curves that are known on a grid."""

import numpy as np
import pytest

from dotphase.numerics.crossings import (
    Sample,
    find_root,
    first_rise,
    last_fall,
    locate_fall,
    straight_root,
)

GRID = np.array([0.0, 1.0, 2.0, 3.0])


def test_a_straight_line_between_neighbors():
    fall = last_fall(GRID, np.array([2.0, 1.0, -3.0, -4.0]))
    assert (fall.position, fall.left, fall.fraction, fall.slope) == (1.25, 1, 0.25, -4.0)
    assert straight_root(1.0, 1.0, 2.0, -3.0) == fall.position


def test_the_last_fall_counts_and_rises_do_not():
    assert last_fall(GRID, np.array([1.0, -1.0, 1.0, -1.0])).position == 2.5
    assert last_fall(GRID, np.array([-1.0, -1.0, 1.0, 2.0])) is None
    assert last_fall(GRID, np.array([1.0, np.nan, -1.0, -1.0])) is None


def test_known_slopes_follow_a_cubic_exactly():
    gap, slope = 8 - (GRID + 0.3) ** 3, -3 * (GRID + 0.3) ** 2
    assert last_fall(GRID, gap, slope).position == pytest.approx(1.7, abs=1e-12)
    assert last_fall(GRID, gap).position != pytest.approx(1.7, abs=1e-2)
    straight = last_fall(GRID, gap)
    assert straight.interpolation_error == 0
    assert last_fall(GRID, gap, slope).interpolation_error == pytest.approx(
        abs(1.7 - straight.position)
    )


def test_errors_are_correlated_or_average_out():
    fall = last_fall(GRID, np.array([2.0, 1.0, -3.0, -4.0]))
    noise = np.array([9.0, 0.4, 0.8, 9.0])
    assert fall.stderr(noise) == pytest.approx(0.8 / 4)
    assert fall.stderr(noise, independent=True) == pytest.approx(np.hypot(0.3, 0.2) / 4)
    gap = np.array([2.0, 1.0, -3.0, -4.0])
    assert locate_fall(GRID, gap, noise) == (1.25, fall.stderr(noise))
    assert np.isnan(locate_fall(GRID, -gap, noise)).all()


def test_a_rise_is_located_beyond_a_position():
    values = np.array([1.0, -2.0, -1.0, 1.0])
    assert 2 < first_rise(GRID, values, after=0.5) < 3
    assert np.isnan(first_rise(GRID, values))  # positive from the first point on
    assert np.isnan(first_rise(GRID, -np.abs(values), after=0.5))


def test_a_rise_before_the_first_point_is_extrapolated():
    straight = GRID - 0.8
    assert first_rise(GRID, straight, after=0.5) == pytest.approx(0.8)
    assert first_rise(GRID, straight, after=0.95) == 0.95


def test_a_root_is_found_with_known_slopes_and_with_secants():
    def cubic(x):
        return Sample(x**3 - 2, 1e-9, 3 * x**2)

    root = find_root(cubic, 1.0, np.nan, (0.5, 3.0), rtol=1e-9, max_steps=20)
    assert root.position == pytest.approx(2 ** (1 / 3), rel=1e-8)
    assert root.stderr == pytest.approx(1e-9 / (3 * 2 ** (2 / 3)), rel=1e-6)

    evaluations = []

    def without_slope(x):
        evaluations.append(x)
        return Sample(x**3 - 2, 1e-9)

    root = find_root(without_slope, 1.0, 4.0, (0.5, 3.0), rtol=1e-9, max_steps=20)
    assert root.position == pytest.approx(2 ** (1 / 3), rel=1e-8)
    assert len(evaluations) < 10


def test_a_noisy_root_ends_at_its_error_and_stays_in_bounds():
    evaluations = []

    def noisy(x):
        evaluations.append(x)
        return Sample(x - 1, 0.1)

    root = find_root(noisy, 1.2, 1.0, (0.0, 2.0), settled=3.0)
    assert len(evaluations) == 1 and root.position == pytest.approx(1.0)
    assert find_root(noisy, 0.5, 1.0, (0.0, 0.8), settled=0.1).position == 0.8
    assert find_root(lambda x: None, 0.5, 1.0, (0.0, 1.0)) is None
