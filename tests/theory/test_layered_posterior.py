"""The Bayes-optimal learner of deep attention against limits that are known exactly."""

import dataclasses

import numpy as np
import pytest

import dotphase as dp
from dotphase.study.tasks import compute_point
from dotphase.theory.layered_posterior import Sample

pytestmark = pytest.mark.usefixtures("quick_to_compile")


@pytest.fixture(scope="module")
def deep():
    return dp.load_model("deep-attention", layers=2, skip=1.0)


def test_the_last_layer_alone_is_the_model_of_one_layer(deep):
    # With a strong skip connection w = (1 + c) z_2 is known up to its sign, as for one layer.
    sample = Sample(
        deep.replace(teacher=dataclasses.replace(deep.teacher, skip=np.asarray(1e6))), 0, 0
    )
    one = dp.bayes.optimal(dp.positional_semantic(), alpha=0.3)
    gain, spread = sample.information(np.array([0.0, one.overlap]))
    assert gain[1] * 0.3 * (1 - one.overlap) == pytest.approx(one.overlap, rel=0.02)
    assert abs(gain[0]) < 1e-9
    assert 1 / sample.information(np.zeros(2))[1][1] == pytest.approx(1 / 6, rel=0.01)
    assert abs(spread[0]) < 0.02


def test_a_weak_recovery_below_the_bound_is_impossible(deep):
    # Jensen: E|E[z z^T | y] - 1|^2 <= E|z z^T - 1|^2 = L (L + 1) = 6.
    for skip in (0.0, 1.0, 4.0):
        teacher = dataclasses.replace(deep.teacher, skip=np.asarray(skip))
        _, spread = Sample(deep.replace(teacher=teacher), 0, 0).information(np.zeros(2))
        assert spread[1] < 6.05
        assert spread[0] < 0.2 * spread[1] or skip == 0


def test_the_overlap_of_the_released_table():
    # BO_2w.csv of SPOC-group/SequenceIndexModels at alpha = .4: Q11 = 0, Q22 = .4988.
    study = dp.Study("bayes-layers", {"alpha": 0.4}, model="deep-attention", seeds=[0])
    values = compute_point(**study.arguments(0)).values
    assert values["converged"] and values["first_overlap"] == 0
    assert abs(values["last_overlap"] - 0.4988) < 0.03
    assert 0 < values["last_stderr"] < 0.01


def test_other_teachers_are_refused(deep):
    with pytest.raises(dp.InvalidInput, match="last layer"):
        dp.bayes.optimal(dp.load_model("deep-attention", output="product"), alpha=0.4)
    with pytest.raises(dp.InvalidInput, match="correlation"):
        dp.bayes.optimal(deep.replace(correlation=[[1, 0.5], [0.5, 1]]), alpha=0.4)


def test_thresholds_without_positive_information_are_not_determined(deep, monkeypatch):
    noise = np.array([0.1, -0.1]), np.array([0.1, -0.1])
    monkeypatch.setattr(Sample, "information", lambda *_: noise)
    with pytest.warns(UserWarning, match="log2_sentences"):
        alphas, _ = dp.bayes.layer_thresholds(deep, log2_sentences=8)
    assert np.isnan(alphas).all()


def test_the_seed_of_thresholds_is_checked(deep):
    with pytest.raises(dp.InvalidInput, match="seed"):
        dp.bayes.layer_thresholds(deep, seed=-1)
