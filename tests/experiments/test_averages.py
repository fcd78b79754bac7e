"""Means over data sets, and where trained losses cross."""

import numpy as np
import pytest
import xarray as xr

import dotphase as dp

AXES = ("alpha", "omega", "seed", "start")


def grid(seeds, alphas=11):
    """Runs whose losses cross at alpha = 1 + omega, with noise that both starts share."""
    alpha, omega = np.linspace(0.5, 1.9, alphas), np.array([0.1, 0.3])
    rng = np.random.default_rng(0)
    shape = (alphas, 2, seeds)
    shared, own = rng.normal(size=shape), rng.normal(size=shape)
    gap = 0.1 * ((1 + omega[:, None]) ** 2 - alpha[:, None, None] ** 2) + 0.002 * own
    loss = np.stack([1 + shared + gap, 1 + shared], axis=-1)
    values = {"train_loss": (AXES, loss), "test_error": (AXES, np.stack([own, 2 + own], axis=-1))}
    other = ("m", "theta", "q", "semantic_alignment", "positional_alignment", "iterations")
    values |= {name: (AXES, np.ones((*shape, 2))) for name in other}
    mechanism = np.full((*shape, 2), ["semantic", "positional"])
    mechanism[0, :, :, 0] = "positional"
    values |= {"converged": (AXES, np.ones((*shape, 2), np.int8)), "mechanism": (AXES, mechanism)}
    values["linear_test_error"] = ("omega", [0.5, 0.6])
    coords = {
        "alpha": alpha,
        "omega": omega,
        "seed": range(seeds),
        "start": ["semantic", "positional"],
    }
    return xr.Dataset(values, coords, attrs={"parameter": "omega", "d": 20})


def test_crossings_are_found_with_their_errors():
    means = dp.analysis.means_over_seeds(grid(24))
    miss = means["alpha_c"].values - [1.1, 1.3]
    error = means["alpha_c_stderr"].values
    assert np.all(np.abs(miss) < 4 * error) and np.all((error > 1e-4) & (error < 2e-3))
    # Differences on the same data do not see what both starts share.
    assert float(means["loss_difference_stderr"].max()) < 0.002
    assert float(means["train_loss_stderr"].min()) > 0.1


def test_means_shares_and_gains():
    runs = grid(3)
    means = dp.analysis.means_over_seeds(runs)
    np.testing.assert_allclose(means["train_loss"], runs["train_loss"].mean("seed"))
    spread = runs["train_loss"].std("seed", ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(means["train_loss_stderr"], spread)
    assert means["seeds"] == 3 and means.attrs["d"] == 20
    stayed = means["stayed"].sel(start="semantic").transpose("alpha", "omega").values
    assert np.all(stayed[0] == 0) and np.all(stayed[1:] == 1)
    # The test error that counts is that of the start with the lower training loss.
    last = {"alpha": -1, "omega": 0}
    lowest = runs["test_error"].isel(last, drop=True).sel(start="semantic").mean("seed")
    assert float(means["test_gain"].isel(last)) == pytest.approx(0.5 - float(lowest))
    first = {"alpha": 0, "omega": 1}
    lowest = runs["test_error"].isel(first, drop=True).sel(start="positional").mean("seed")
    assert float(means["test_gain"].isel(first)) == pytest.approx(0.6 - float(lowest))


def test_coarse_grids_and_single_seeds():
    coarse = dp.analysis.means_over_seeds(grid(2, alphas=3))
    np.testing.assert_allclose(coarse["alpha_c"], [1.1, 1.3], atol=0.05)
    single = dp.analysis.means_over_seeds(grid(1))
    np.testing.assert_allclose(single["alpha_c"], [1.1, 1.3], atol=0.02)
    assert np.all(np.isnan(single["train_loss_stderr"]))
    outside = dp.analysis.means_over_seeds(grid(2).isel(alpha=slice(4)))
    assert np.all(np.isnan(outside["alpha_c"]))
