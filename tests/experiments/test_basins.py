"""Basins: the same data at every scale, shares with errors."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.finite_d.overlaps import MECHANISMS

D, ALPHAS, SCALES = 40, [1.0, 4.0], [0.01, 1.0]


@pytest.fixture(scope="module")
def found(paper):
    return dp.basins(paper, ALPHAS, SCALES, D, optimizers=["gd"], seeds=3, steps={"gd": 2500})


def test_descent_arrives_and_says_where(found):
    assert found["mechanism"].dims == ("optimizer", "alpha", "seed", "scale")
    gd = found.sel(optimizer="gd")
    arrived = (gd["outcome"] == 1).values
    assert np.all(gd["gradient_norm"].values[arrived] <= 1e-5 * np.sqrt(D))
    assert arrived.mean() > 0.7
    assert set(found["mechanism"].values.ravel()) <= {*MECHANISMS, "diverged"}
    # Large starts and many sentences: the semantic minimum, as the population flow says.
    assert np.all(gd["mechanism"].sel(alpha=4.0, scale=1.0) == "semantic")


def test_shares_have_errors_even_where_all_agree():
    kinds = np.array([["semantic"] * 4, ["semantic", "positional"] * 2])
    shares = dp.analysis.basin_shares(xr.Dataset({"mechanism": (("alpha", "seed"), kinds)}))
    semantic = shares.sel(found="semantic")
    np.testing.assert_allclose(semantic["share"], [1.0, 0.5])
    np.testing.assert_allclose(semantic["stderr"], np.sqrt([5 / 36 / 7, 1 / 4 / 7]))
