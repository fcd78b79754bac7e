"""Numerical posteriors against cases that are known exactly."""

import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.numerical_posterior import information

pytestmark = pytest.mark.usefixtures("quick_to_compile")


def test_a_gaussian_channel_is_known_in_closed_form():
    # g = (y - omega)/(V + noise^2): E g^2 = -E dg/domega = 1/(V + noise^2).
    model = dp.load_model("ridge-regression", noise=0.5)
    for overlap in (0.3, 0.75):
        found = information(model, np.array([[overlap]]), 0, 0, 14)
        exact = 1 / (1 - overlap + 0.25)
        np.testing.assert_allclose(found.gain, exact, rtol=0.06)
        np.testing.assert_allclose(found.spread, exact**2, rtol=0.06)
        np.testing.assert_allclose(found.label_error, 1 / exact, rtol=0.06)


def test_weak_recovery_where_it_is_known(paper):
    alpha, error = dp.bayes.weak_recovery(dp.load_model("phase-retrieval"), log2_points=14)
    assert abs(alpha - 1 / 2) < 0.05 and error < 0.03
    # Without the correction of the neighbors' smear 0.181 on average over seeds.
    alpha, error = dp.bayes.weak_recovery(paper, log2_points=15)
    assert abs(alpha - 1 / 6) < 0.008 and error < 0.009
    # The sign of a field says at once on which side it is.
    assert dp.bayes.weak_recovery(dp.load_model("logistic"), log2_points=12) == (0.0, 0.0)


def signs(h):
    return jnp.sign(jnp.sum(jnp.sign(h)))


def test_hidden_units_specialize_between_one_and_three():
    # Two units with sign activations (Aubin et al., arXiv:1806.05451); larger samples say 2.03.
    model = dp.Model(signs, loss=lambda x, y: (y - x[0, 0]) ** 2, sigma=1.0, teacher_rank=2)
    few, many = (dp.bayes.numerical(model, alpha, alike=True, log2_points=11) for alpha in (1, 3.5))
    assert few.multiplier + 3 * few.multiplier_stderr < 1
    assert many.multiplier - 3 * many.multiplier_stderr > 1
    assert few.overlap[0, 0] == pytest.approx(few.overlap[1, 1], rel=0.01)


def test_correlated_tokens_are_another_teacher_of_independent_ones(paper):
    model = paper.replace(correlation=[[1.0, 0.6], [0.6, 1.0]])
    K = np.array([[1.0, 0.0], [0.6, 0.8]])
    same = paper.replace(teacher=lambda h: paper.teacher(K @ h))
    one, other = (information(each, np.array([[0.3]]), 0, 0, 10) for each in (model, same))
    np.testing.assert_allclose(one.gain, other.gain, rtol=1e-6)
    np.testing.assert_allclose(one.label_error, other.label_error, rtol=1e-6)
    assert abs(one.label_error - information(paper, np.array([[0.3]]), 0, 0, 10).label_error) > 1e-4


def test_what_it_does_not_know_is_refused(paper):
    with pytest.raises(dp.InvalidInput, match="latent"):
        dp.bayes.weak_recovery(dp.load_model("single-location"))
    with pytest.raises(dp.InvalidInput, match="teacher_rank"):
        dp.bayes.numerical(dp.load_model("committee", units=7), alpha=1.0)
