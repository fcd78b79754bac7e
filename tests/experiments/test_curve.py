import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.experiments.theory.curve import interpolate_alpha_c
from dotphase.storage.files import write_dataset

ALPHAS = [1.1, 1.4, 0.5]


@pytest.fixture(scope="module")
def dataset():
    return dp.curve(dp.positional_semantic(), ALPHAS, log2_points=13)


def test_dimensions_and_values(dataset):
    assert dataset["train_loss"].dims == ("branch", "alpha")
    assert dataset["alpha"].values.tolist() == ALPHAS
    point = dataset.sel(branch="semantic", alpha=1.4)
    assert point["found"] == "semantic" and bool(point["on_branch"])
    assert 0 < point["theta"] < 0.25
    assert 0 < point["theta_stderr"] < 0.1 * point["theta"]
    assert np.isfinite(dataset["train_loss"]).all()


def test_a_branch_that_ended_is_marked(dataset):
    point = dataset.sel(branch="semantic", alpha=0.5)
    assert point["found"] == "uninformed"
    assert not bool(point["on_branch"])
    assert not bool(point["trusted"])


def test_crossing_lies_where_the_losses_meet(dataset):
    alpha_c, error = float(dataset["alpha_c"]), float(dataset["alpha_c_stderr"])
    assert 1.1 < alpha_c < 1.4
    assert 0 < error < 0.1
    gap = dataset["train_loss"].sel(branch="semantic") - dataset["train_loss"].sel(
        branch="positional"
    )
    assert gap.sel(alpha=1.1) > 0 > gap.sel(alpha=1.4)


def test_no_crossing_is_nan(dataset):
    assert np.isnan(interpolate_alpha_c(dataset.sel(alpha=[1.4]))[0])
    assert np.isnan(interpolate_alpha_c(dataset.sel(branch=["semantic"]))[0])


def test_provenance_and_round_trip(dataset, tmp_path):
    path = write_dataset(dataset, tmp_path / "curve.nc")
    with xr.open_dataset(path) as loaded:
        xr.testing.assert_equal(loaded.load(), dataset)
        for key in ("software", "started", "ridge", "sigma", "teacher", "seed", "rtol"):
            assert key in loaded.attrs, key
        assert "omega=0.3" in loaded.attrs["teacher"]
    assert [file.name for file in tmp_path.iterdir()] == ["curve.nc"]


def test_a_failed_write_leaves_the_old_file(dataset, tmp_path):
    path = write_dataset(dataset, tmp_path / "curve.nc")
    before = path.read_bytes()
    broken = dataset.assign(bad=("alpha", [object()] * len(ALPHAS)))
    with pytest.raises(Exception, match=r"."):
        write_dataset(broken, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["curve.nc"]


@pytest.mark.parametrize(
    ("alphas", "branches", "field"),
    [([], ["semantic"], "alphas"), ([1.0, 1.0], ["semantic"], "alphas"),
     ([-1.0], ["semantic"], "alpha"), ([1.0], [], "branches"),
     ([1.0], ["semantic", "semantic"], "branches"), ([1.0], ["other"], "branches")],
)  # fmt: skip
def test_bad_grids_are_refused(alphas, branches, field):
    with pytest.raises(ValueError, match=f"^{field} = "):
        dp.curve(dp.positional_semantic(), alphas, branches)
