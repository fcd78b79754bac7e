from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.loss import reduce, value_and_gradient
from dotphase.training import hessian


def test_lanczos_finds_the_eigenvalues_of_the_dense_hessian(paper):
    d = 70
    reduced = eqx.filter_jit(reduce)(paper, dp.sample(paper, d=d, n=100, key=0))
    point = jnp.asarray(np.random.default_rng(0).standard_normal((d, 1)))

    def loss(flat):
        return value_and_gradient(paper, reduced, flat.reshape(d, 1))[0]

    dense = np.linalg.eigvalsh(jax.jit(jax.hessian(loss))(point.ravel()))
    curvature = hessian.smallest_curvatures(paper, reduced, point, 4)
    assert d > hessian.MAX_DENSE
    np.testing.assert_allclose(curvature.eigenvalues, dense[:4], rtol=1e-7)
    assert curvature.largest == pytest.approx(dense[-1], rel=1e-2)
    assert curvature.verdict == "not critical"


def test_minimum_and_saddle(paper):
    d = 200
    training = dp.train(paper, 2.0, d, seeds=1, start="semantic")
    at_minimum = dp.curvature(paper, 2.0, d, training.runs[0].weights, count=1)
    assert at_minimum.verdict == "minimum"
    assert at_minimum.gradient_norm == pytest.approx(training.runs[0].gradient_norm, rel=1e-3)
    # At Q = 0 the gradient vanishes by symmetry and the positional direction leads down.
    at_zero = dp.curvature(paper, 2.0, d, np.zeros((d, 1)), count=1)
    assert at_zero.verdict == "saddle"
    assert at_zero.gradient_norm == 0
    along = abs(at_zero.direction.sum()) / np.sqrt(d)
    assert along > 0.9
    assert "saddle" in str(at_zero)


def test_bad_weights(paper):
    with pytest.raises(dp.InvalidInput, match="weights"):
        dp.curvature(paper, 1.0, 20, np.zeros((19, 1)))
