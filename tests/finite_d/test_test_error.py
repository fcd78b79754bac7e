from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.loss import project, reduce, sentence_losses
from dotphase.finite_d.test_error import attention_error, linear_error, quadrature

_exact = eqx.filter_jit(attention_error)


@eqx.filter_jit
def _held_out(model, data, weights):
    reduced = reduce(model, data)
    return 2 * sentence_losses(model, reduced, project(reduced.z, weights)) / model.length


@pytest.fixture(scope="session")
def colored():
    """Two tokens with different spectra."""
    return dp.positional_semantic(
        spectrum=dp.Spectrum([[6.0, 1.0, 0.2, 0.2], [1.0, 2.0, 1.0, 0.0]])
    )


@pytest.mark.parametrize("name", ["paper", "three_tokens", "colored"])
def test_exact_error_agrees_with_held_out_sentences(name, request):
    """At d = 8 the terms of order 1/d are a large part of the error."""
    model = request.getfixturevalue(name)
    d, n = 8, 60_000
    data = dp.sample(model, d=d, n=n, key=0)
    rng = np.random.default_rng(0)
    weights = 0.6 * data.teacher_weights + 0.5 * data.positions[:1].T
    weights = weights + jnp.asarray(0.4 * rng.standard_normal((d, model.student_rank)))
    errors = np.asarray(_held_out(model, data, weights))
    exact = _exact(model, weights, data.teacher_weights, data.positions, quadrature(model))
    stderr = errors.std() / np.sqrt(n)
    assert abs(errors.mean() - exact) < 4 * stderr
    assert stderr < 0.01 * exact


def test_error_of_the_teachers_own_weights_without_positions(paper):
    """Q along Q* makes the covariance singular; without omega and positions the error is zero."""
    model = dp.Model(dp.softmax_attention, dp.softmax_attention, length=2)
    teacher = jnp.asarray(np.random.default_rng(0).standard_normal((30, 1)))
    error = _exact(model, teacher, teacher, jnp.zeros((2, 30)), quadrature(model))
    assert abs(float(error)) < 1e-12


def test_equal_eigenvalues_have_the_error_of_white_tokens(paper, rng):
    flat = dp.positional_semantic(spectrum=dp.Spectrum([1.0, 1.0]))
    teacher, weights = jnp.asarray(rng.standard_normal((2, 8, 1)))
    positions = jnp.asarray(rng.standard_normal((2, 8)))
    white, equal = (
        float(_exact(model, weights, teacher, positions, quadrature(model)))
        for model in (paper, flat)
    )
    assert white == pytest.approx(equal, rel=1e-12)


def test_linear_layer_error_tends_to_its_limit(paper):
    d = 20_000
    teacher = np.random.default_rng(0).standard_normal((d, 1))
    teacher = jnp.asarray(teacher * np.sqrt(d) / np.linalg.norm(teacher))
    h = 0.5 * np.random.default_rng(1).standard_normal((200_000, 2, 1))
    mean = jnp.mean(jax.vmap(paper.teacher)(jnp.asarray(h)), axis=0)
    error = float(eqx.filter_jit(linear_error)(paper, mean, teacher, quadrature(paper)))
    assert error == pytest.approx(dp.analysis.linear_test_error(paper), rel=5e-3)


def test_product_rule_is_accurate(paper):
    rule = quadrature(paper)
    fourth = np.sum(rule.weights * rule.points[0] ** 4 * rule.points[3] ** 2)
    assert fourth == pytest.approx(3.0, rel=1e-10)
