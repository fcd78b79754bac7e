"""Frequent mistakes in the functions and arguments of a model are named with what mends them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp


def condition(h):
    return dp.softmax_attention(h) if h[0, 0] > 0 else jnp.eye(2)


def with_numpy(h):
    return np.exp(h @ h.T)


def noisy(h):
    return dp.softmax_attention(h) + np.random.default_rng().normal() * jnp.eye(2)


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"teacher": condition}, "use jnp.where"),
        ({"teacher": with_numpy}, "use jax.numpy instead of NumPy"),
        ({"positions": np.ones((2, 5))}, "Gram matrix p @ p.T of shape (2, 2), not the vectors p"),
    ],
)
def test_models(changes, advice):
    parts = {"teacher": dp.softmax_attention, "student": dp.softmax_attention, "length": 2}
    with pytest.raises(dp.InvalidInput, match=re.escape(advice)):
        dp.Model(**parts | changes)


def test_misspelled_parameters_of_a_model():
    with pytest.raises(TypeError, match="'lenght'; did you mean length"):
        dp.Model(dp.softmax_attention, dp.softmax_attention, lenght=2)


def test_functions_that_vary_are_warned_about():
    with pytest.warns(UserWarning, match="teacher = 'noisy': must depend on its argument alone"):
        dp.Model(noisy, dp.softmax_attention, length=2)


def test_alphas_of_other_functions(paper):
    with pytest.raises(dp.InvalidInput, match="curve, solve_many and grid take several"):
        dp.solve(paper, [1.0, 2.0])
    with pytest.raises(dp.InvalidInput, match=r"solution.derivative replaces grad"):
        jax.grad(lambda alpha: dp.solve(paper, alpha).train_loss)(1.0)


def test_a_branch_that_needs_positions_is_warned_about(paper):
    with pytest.warns(UserWarning, match="positions of this model are zero"):
        model = paper.replace(positions=np.zeros((2, 2)))
        solution = dp.solve(model, 2.0, "positional", log2_points=12)
    assert solution.found == "uninformed" and not solution.is_minimum


def test_completion_of_the_spectra_lists_public_names():
    assert dir(dp.spectrum) == ["Spectrum", "from_data", "power_law", "spiked"]
