from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.linear_layer import linear_layer


def test_the_linear_layer_minimises_its_loss(paper):
    data = dp.sample(paper, d=15, n=20, key=0)
    layer = np.asarray(eqx.filter_jit(linear_layer)(paper, data))
    h = np.asarray(data.tokens @ data.teacher_weights) / np.sqrt(15)
    target = np.asarray(jax.jit(jax.vmap(paper.teacher))(h))
    x = np.asarray(data.tokens)
    miss = target @ x - layer @ x
    gradient = -np.einsum("nkd,nld->kl", miss, x) / 15 + 0.01 * layer
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


def test_linear_baseline_tends_to_its_limit(paper):
    found = dp.baseline(paper, 2.0, 200, "linear", seeds=8)
    assert found.limit == pytest.approx(dp.analysis.linear_test_error(paper))
    assert abs(found.test_error - found.limit) < 3 * found.stderr + 5 / 200 * found.limit
    training = dp.train(paper, 2.0, 200, seeds=1)
    assert training.runs[0].linear_test_error == pytest.approx(found.runs[0][1], rel=1e-9)


def test_the_perceptron_fits_its_data_and_nothing_else(paper):
    """With as many numbers as parameters it memorises; the linear layer generalises better."""
    perceptron = dp.baseline(paper, 1.5, 20, "perceptron", seeds=1)
    linear = dp.baseline(paper, 1.5, 20, "linear", seeds=1)
    assert perceptron.train_error < 0.2 * perceptron.test_error
    assert perceptron.test_error > linear.test_error
    assert perceptron.limit is None
    again = dp.baseline(paper, 1.5, 20, "perceptron", seeds=1)
    assert again.test_error == perceptron.test_error


def test_kernel_regression_learns_the_mean_attention_from_much_data(paper):
    """On one dimension more data than a kernel needs: better than answering zero."""
    found = dp.baseline(paper, 30.0, 2, "kernel", seeds=1)
    zero = 0.25 * 0.52  # E|T x|^2/(d L) is about half of sigma^2
    assert found.train_error < found.test_error < 0.5 * zero
    assert found.test_error > dp.analysis.linear_test_error(paper)


def test_what_sees_positions_only_is_at_best_the_linear_layer(paper):
    """A perceptron of the encodings finds it; attention between them is shrunk by the ridge."""
    found = {
        kind: dp.baseline(paper, 1.5, 20, kind, seeds=1) for kind in ("positions", "positional")
    }
    linear = dp.baseline(paper, 1.5, 20, "linear", seeds=1)
    assert found["positions"].train_error == pytest.approx(linear.train_error, rel=0.02)
    assert linear.train_error < found["positional"].train_error < 0.05


def test_bad_kind(paper):
    with pytest.raises(dp.InvalidInput, match="kind"):
        dp.baseline(paper, 1.0, 20, "tree")
