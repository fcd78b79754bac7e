import math

import jax.numpy as jnp
import numpy as np

import dotphase as dp
from models import softmax


def test_linear_layer_against_a_plain_average(rng):
    model = dp.positional_semantic(omega=0.3)
    h = 0.5 * rng.normal(size=(400_000, 2))
    first = 1 / (1 + np.exp(-h[:, 0] * (h[:, 0] - h[:, 1])))
    expected = 0.7**2 * 4 * np.var(first) * 0.25 / 2
    np.testing.assert_allclose(dp.analysis.linear_test_error(model), expected, rtol=1e-2)


def test_linear_layer_is_perfect_for_a_positional_teacher():
    assert dp.analysis.linear_test_error(dp.positional_semantic(omega=1.0)) < 1e-20


def test_linear_layer_weighs_tokens_by_their_variance():
    def teacher(h):  # only the entry (1, 2) fluctuates, with variance sigma_1^2
        return jnp.array([[0.0, 1.0], [0.0, 0.0]]) * h[0, 0]

    model = dp.Model(teacher=teacher, student=softmax, length=2, sigma=[0.5, 0.8])
    np.testing.assert_allclose(dp.analysis.linear_test_error(model), 0.25 * 0.64 / 2, rtol=1e-3)


def test_published_value():
    """arXiv:2402.03902 reports .00198 at omega = .3, sigma = .5."""
    assert math.isclose(
        dp.analysis.linear_test_error(dp.positional_semantic()), 0.00198, rel_tol=0.01
    )
