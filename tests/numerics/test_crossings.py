"""Falls and rises through zero of curves that are known on a grid."""

import numpy as np
import pytest

from dotphase.numerics.crossings import first_rise, last_fall, straight_root

GRID = np.array([0.0, 1.0, 2.0, 3.0])


def test_a_straight_line_between_neighbours():
    fall = last_fall(GRID, np.array([2.0, 1.0, -3.0, -4.0]))
    assert (fall.at, fall.left, fall.share, fall.slope) == (1.25, 1, 0.25, -4.0)
    assert straight_root(1.0, 1.0, 2.0, -3.0) == fall.at


def test_the_last_fall_counts_and_rises_do_not():
    assert last_fall(GRID, np.array([1.0, -1.0, 1.0, -1.0])).at == 2.5
    assert last_fall(GRID, np.array([-1.0, -1.0, 1.0, 2.0])) is None
    assert last_fall(GRID, np.array([1.0, np.nan, -1.0, -1.0])) is None


def test_known_slopes_follow_a_cubic_exactly():
    gap, slope = 8 - (GRID + 0.3) ** 3, -3 * (GRID + 0.3) ** 2
    assert last_fall(GRID, gap, slope).at == pytest.approx(1.7, abs=1e-12)
    assert last_fall(GRID, gap).at != pytest.approx(1.7, abs=1e-2)
    straight = last_fall(GRID, gap)
    assert straight.bend == 0
    assert last_fall(GRID, gap, slope).bend == pytest.approx(abs(1.7 - straight.at))


def test_errors_go_together_or_average_out():
    fall = last_fall(GRID, np.array([2.0, 1.0, -3.0, -4.0]))
    noise = np.array([9.0, 0.4, 0.8, 9.0])
    assert fall.error(noise) == pytest.approx(0.8 / 4)
    assert fall.error(noise, independent=True) == pytest.approx(np.hypot(0.3, 0.2) / 4)


def test_a_rise_is_looked_for_from_a_place_on():
    values = np.array([1.0, -2.0, -1.0, 1.0])
    assert 2 < first_rise(GRID, values, after=0.5) < 3
    assert np.isnan(first_rise(GRID, values))  # positive from the start: where it rose is not known
    assert np.isnan(first_rise(GRID, -np.abs(values), after=0.5))


def test_a_rise_before_the_first_point_is_extended_to():
    straight = GRID - 0.8
    assert first_rise(GRID, straight, after=0.5) == pytest.approx(0.8)
    assert first_rise(GRID, straight, after=0.95) == 0.95
