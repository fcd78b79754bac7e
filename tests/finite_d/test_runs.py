"""Means, mechanisms and predictions of many runs."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.finite_d.runs import Prediction, Run
from dotphase.training.result import Training


def run(index, semantic, positional, loss, outcome="converged"):
    return Run(
        index=index, train_loss=loss, test_error=0.1, test_error_sampled=0.1,
        test_error_sampled_stderr=0.01, m=0.1, theta=0.2, q=0.3, linear_test_error=0.2,
        gradient_norm=0.0, semantic_alignment=semantic, positional_alignment=positional,
        converged=outcome == "converged", reason=outcome, outcome=outcome, iterations=3,
        seconds=0.1, weights=np.zeros((400, 1)),
    )  # fmt: skip


def trained(*runs, optimizer="lbfgs"):
    return Training(
        model=dp.positional_semantic(), alpha=2.0, d=400, n=800, start="random", runs=runs,
        seconds=1.0, settings=dp.TrainingSettings(optimizer=optimizer),
    )  # fmt: skip


@pytest.fixture
def several():
    return trained(run(0, 0.9, 0.0, 1.0), run(1, 0.0, 0.9, 5.0), run(2, 0.9, 0.0, 3.0),
                   run(3, 0.9, 0.0, 99.0, "diverged"))  # fmt: skip


def test_means_are_shown_for_each_mechanism(several):
    assert several.mechanisms == {"semantic": 2, "positional": 1}
    assert several.select("semantic").mean["train_loss"] == 2.0
    plain = several.to_dict()["mechanisms"]
    assert plain["semantic"]["stderr"]["train_loss"] == 1.0
    assert plain["positional"]["stderr"]["train_loss"] is None
    text = str(several)
    assert "4 runs: 2 semantic, 1 positional" in text
    assert "2.0 ± 1.0" in text and "semantic (2)" in text
    assert "<td" in several._repr_html_()


def test_predictions_are_printed_next_to_the_means(several):
    text = str(
        several.with_predictions(
            {"semantic": Prediction({"train_loss": 1.25}, at_d=("train_loss",))}
        )
    )
    assert "2.0 ± 1.0" in text and "theory at d = 400: 1.25" in text
    assert several.theory == {}


def test_a_run_with_fixed_steps_is_successful_without_convergence():
    spent = run(0, 0.9, 0.0, 1.0, "steps")
    assert not trained(spent).successful and trained(spent, optimizer="gd").successful
    assert not trained(run(0, 0.9, 0.0, 1.0, "diverged"), optimizer="gd").successful
    assert dp.TrainingSettings(optimizer="gd").has_fixed_steps
    assert not dp.TrainingSettings(steps=2).has_fixed_steps


def test_runs_are_a_labeled_dataset(several):
    dataset = several.dataset()
    assert dataset["mechanism"].values.tolist()[:2] == ["semantic", "positional"]
    assert dataset["test_error"].attrs == {"long_name": "test error", "units": "1"}
    assert dataset.attrs["optimizer"] == "lbfgs" and "weights" not in dataset
    steps = xr.Dataset({"m": (("seed", "step"), np.ones((4, 2)))}, coords={"seed": range(4)})
    assert replace(several, path=steps).dataset()["path_m"].dims == ("seed", "step")
