"""Basins: the same data at every scale, shares with errors."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.finite_d.overlaps import MECHANISMS

D, ALPHAS, SCALES = 40, [1.0, 4.0], [0.01, 1.0]


@pytest.fixture(scope="module")
def runs(paper):
    return dp.basins(paper, ALPHAS, SCALES, D, optimizers=["gd"], seeds=3, steps=2500)


def test_descent_reaches_minima(runs):
    assert runs["mechanism"].dims == ("optimizer", "alpha", "seed", "scale")
    gd = runs.sel(optimizer="gd")
    converged = (gd["outcome"] == 1).values
    assert np.all(gd["gradient_norm"].values[converged] <= 1e-5 * np.sqrt(D))
    assert converged.mean() > 0.7
    assert set(runs["mechanism"].values.ravel()) <= {*MECHANISMS, "diverged"}
    # Large starts and many sentences: the semantic minimum, as the population flow says.
    assert np.all(gd["mechanism"].sel(alpha=4.0, scale=1.0) == "semantic")


def test_each_optimizer_may_have_settings_of_its_own(paper):
    events = []
    fast = dp.TrainingSettings(optimizer="momentum", steps=3, lr=0.2)
    runs = dp.basins(paper, [2.0], [1.0], 20, seeds=2, optimizers=["gd", fast], steps=2,
                     runs_per_batch=1, progress=events.append)  # fmt: skip
    assert [(event.done, event.total) for event in events] == [(1, 2), (2, 2)]
    assert runs["iterations"].sel(seed=0).values.ravel().tolist() == [2, 3]
    assert runs.attrs["steps"] == [2, 3]
    with pytest.raises(dp.InvalidInput, match=r"optimizers = .*one or more different"):
        dp.basins(paper, [2.0], [1.0], 20, optimizers=["gd", "gd"])
    with pytest.raises(dp.InvalidInput, match="optimizer = 'adam': must be one of"):
        dp.basins(paper, [2.0], [1.0], 20, optimizer="adam")


def test_shares_have_errors_even_if_all_runs_agree():
    kinds = np.array([["semantic"] * 4, ["semantic", "positional"] * 2])
    shares = dp.analysis.basin_shares(xr.Dataset({"mechanism": (("alpha", "seed"), kinds)}))
    semantic = shares.sel(mechanism="semantic")
    np.testing.assert_allclose(semantic["share"], [1.0, 0.5])
    np.testing.assert_allclose(semantic["stderr"], np.sqrt([5 / 36 / 7, 1 / 4 / 7]))
