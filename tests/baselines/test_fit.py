from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.linear_layer import linear_layer


def test_the_linear_layer_minimizes_its_loss(paper):
    data = dp.sample(paper, d=15, n=20, key=0)
    layer = np.asarray(eqx.filter_jit(linear_layer)(paper, data))
    h = np.asarray(data.tokens @ data.teacher_weights) / np.sqrt(15)
    target = np.asarray(jax.jit(jax.vmap(paper.teacher))(h))
    x = np.asarray(data.tokens)
    residual = target @ x - layer @ x
    gradient = -np.einsum("nkd,nld->kl", residual, x) / 15 + 0.01 * layer
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


def test_linear_baseline_tends_to_its_limit(paper):
    linear = dp.baseline(paper, 2.0, 200, "linear", seeds=8)
    assert linear.limit == pytest.approx(dp.analysis.linear_test_error(paper))
    assert abs(linear.test_error - linear.limit) < 3 * linear.stderr + 5 / 200 * linear.limit
    training = dp.train(paper, 2.0, 200, seeds=1)
    assert training.runs[0].linear_test_error == pytest.approx(linear.runs[0][1], rel=1e-9)


def test_the_perceptron_memorizes(paper):
    """The perceptron memorizes its data; the linear layer generalizes better."""
    perceptron = dp.baseline(paper, 1.5, 20, "perceptron", seeds=1)
    linear = dp.baseline(paper, 1.5, 20, "linear", seeds=1)
    assert perceptron.train_error < 0.2 * perceptron.test_error
    assert perceptron.test_error > linear.test_error
    assert perceptron.limit is None
    again = dp.baseline(paper, 1.5, 20, "perceptron", seeds=1)
    assert again.test_error == perceptron.test_error


def test_kernel_regression_learns_the_mean_attention_from_much_data(paper):
    """Two dimensions and many sentences: better than an output of zero."""
    kernel = dp.baseline(paper, 30.0, 2, "kernel", seeds=1)
    zero = 0.25 * 0.52  # E|T x|^2/(d L) is about half of sigma^2
    assert kernel.train_error < kernel.test_error < 0.5 * zero
    assert kernel.test_error > dp.analysis.linear_test_error(paper)


def test_baselines_on_positions_are_at_best_the_linear_layer(paper):
    """A perceptron of the encodings reaches it; the ridge shrinks attention between them."""
    baselines = {
        kind: dp.baseline(paper, 1.5, 20, kind, seeds=1) for kind in ("positions", "positional")
    }
    linear = dp.baseline(paper, 1.5, 20, "linear", seeds=1)
    assert baselines["positions"].train_error == pytest.approx(linear.train_error, rel=0.02)
    assert linear.train_error < baselines["positional"].train_error < 0.05


def test_bad_kind(paper):
    with pytest.raises(dp.InvalidInput, match="kind"):
        dp.baseline(paper, 1.0, 20, "tree")
