"""`Trajectory` as a result: copies, files, datasets and its printout."""

import numpy as np
import pytest

import dotphase as dp
from result_checks import assert_is_a_result


@pytest.fixture(scope="module")
def path(paper):
    return dp.dynamics(paper, 1.0, steps=3, lr=8.0, log2_ensemble=8, repetitions=4, rtol=None)


def test_trajectories_are_results(path, tmp_path):
    assert_is_a_result(path, tmp_path)


def test_a_dataset_has_every_quantity_with_its_axes(path):
    data = path.dataset()
    assert data["theta"].dims == ("step",)
    assert data["theta_samples"].dims == ("repetition", "step")
    assert data["theta_all"].shape == (4, 2, 1, 1)
    np.testing.assert_allclose(data["theta_all"][:, 0, 0, 0], path.theta)
    assert path.overlaps.q.shape == (4, 2, 1, 1)


def test_json_and_text(path):
    values = path.to_dict()
    assert values["lr"] == 8.0
    assert list(values["steps"]) == [0, 1, 2, 3]
    assert set(values["stderr"]) == {"train_loss", "test_error", "theta", "m", "q"}
    assert "start semantic" in str(path)
    assert "trusted" in str(path)
