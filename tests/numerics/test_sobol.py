"""Sobol points without `scipy.stats`."""

import numpy as np
import pytest
from scipy.stats import qmc

from dotphase.numerics import sobol


@pytest.mark.parametrize(
    ("dims", "count"), [(1, 1), (1, 2), (4, 2**12), (7, 64), (64, 16), (200, 8)]
)
def test_points_are_those_of_scipy_bit_by_bit(dims, count):
    expected = qmc.Sobol(dims, scramble=True, rng=np.random.default_rng(3)).random(count)
    np.testing.assert_array_equal(
        sobol.sobol_points(dims, count, np.random.default_rng(3)), expected
    )


def test_without_its_table_scipy_makes_them(monkeypatch):
    expected = sobol.sobol_points(3, 32, np.random.default_rng(1))
    monkeypatch.setattr(sobol, "TABLE", "not/there.npz")
    sobol._directions.cache_clear()
    try:
        assert sobol._directions(64) is None
        found = sobol.sobol_points(3, 32, np.random.default_rng(1))
    finally:
        sobol._directions.cache_clear()
    np.testing.assert_array_equal(found, expected)
