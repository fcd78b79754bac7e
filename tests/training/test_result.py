"""Results of training: identity, copies, files, datasets and text."""

import numpy as np
import pytest

import dotphase as dp
from result_checks import assert_is_a_result, assert_same


@pytest.fixture(scope="module")
def training(paper):
    return dp.train(paper, 2.0, 40, seeds=2, first_index=3, optimizer="gd", steps=4, record=True)


def test_training_is_a_result(training, tmp_path):
    assert_is_a_result(training, tmp_path)
    assert repr(training) == (
        "<Training: semantic start at alpha = 2, d = 40, gd, 2 runs: 2 semantic>"
    )


def test_the_dataset_has_runs_path_and_settings(training):
    dataset = training.dataset()
    assert dataset["seed"].values.tolist() == [run.index for run in training.runs] == [3, 4]
    np.testing.assert_array_equal(dataset["path_m"], training.path["m"])
    settings = {name: dataset.attrs[name] for name in ("optimizer", "lr", "steps", "seed")}
    assert settings == {"optimizer": "gd", "lr": 0.15, "steps": 4, "seed": 0}
    assert dataset["seconds"].attrs["units"] == "s"
    assert all(variable.attrs["long_name"] for variable in dataset.variables.values())


def test_files_keep_settings_and_weights(training, tmp_path):
    loaded = dp.load(training.save(tmp_path / "training.nc"))
    assert loaded.settings == training.settings
    assert_same(loaded.runs[1].weights, training.runs[1].weights)
    assert str(loaded) == str(training)


def test_step_sizes_of_a_function_are_saved_as_numbers(paper, tmp_path):
    sizes = [0.1, 0.2]
    training = dp.train(
        paper, 2.0, 40, seeds=1, optimizer="gd", steps=2, lr=lambda step: sizes[step]
    )
    assert training.dataset().attrs["lr"] == sizes
    loaded = dp.load(training.save(tmp_path / "training.nc"))
    assert loaded.runs[0].train_loss == training.runs[0].train_loss


def test_a_run_is_its_own_equal(training):
    run, other = training.runs
    assert run == run and run != other and len({run, other}) == 2
    assert repr(run).startswith(f"<Run: run 3, {run.mechanism}: train_loss = ")
    assert "\n" not in repr(run) and len(repr(run)) < 150 and "theta" in run._repr_html_()


def test_curvature_is_a_result(paper, training, tmp_path):
    curvature = dp.curvature(paper, 2.0, 40, training.runs[0].weights, index=3, count=2)
    assert_is_a_result(curvature, tmp_path)
    assert dp.load(curvature.save(tmp_path / "curvature.nc")).verdict == curvature.verdict
