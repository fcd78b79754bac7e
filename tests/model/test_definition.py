"""Models: invalid parameters are refused in one line; losses and defaults."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from models import identity, softmax, three_tokens

GOOD = {"teacher": softmax, "student": softmax, "length": 2, "positions": np.eye(2)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"length": 0}, "length"),
        ({"length": 2.5}, "length"),
        ({"teacher_rank": 0}, "teacher_rank"),
        ({"student_rank": -1}, "student_rank"),
        ({"student_rank": True}, "student_rank"),
        ({"sigma": 0.0}, "sigma"),
        ({"sigma": [0.5, -0.5]}, "sigma"),
        ({"sigma": [0.5, 0.5, 0.5]}, "sigma"),
        ({"sigma": float("nan")}, "sigma"),
        ({"sigma": "wide"}, "sigma"),
        ({"sigma": 1e200}, "sigma"),
        ({"positions": np.eye(3)}, "positions"),
        ({"positions": [1, [2]]}, "positions"),
        ({"positions": [[1.0, 0.5], [0.4, 1.0]]}, "positions"),
        ({"positions": [[1.0, 2.0], [2.0, 1.0]]}, "positions"),
        ({"positions": [[np.nan, 0.0], [0.0, 1.0]]}, "positions"),
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": float("inf")}, "ridge"),
        ({"student": lambda h: h}, "student"),
        ({"student": lambda h: jnp.zeros((3, 3))}, "student"),
        ({"teacher": lambda h: jnp.log(-jnp.abs(h @ h.T))}, "teacher"),
        ({"teacher": lambda h: h @ jnp.ones((5, 5))}, "teacher"),
        ({"teacher": "softmax"}, "teacher"),
        ({"teacher": lambda h: {"a": h @ h.T}}, "teacher"),
    ],
)
def test_bad_models_are_refused_in_one_line(change, field):
    with pytest.raises(ValueError) as caught:
        dp.Model(**(GOOD | change))
    message = str(caught.value)
    assert message.startswith(field + " = ")
    assert "\n" not in message
    assert "must be" in message


@pytest.mark.parametrize(
    ("which", "condition", "value"),
    [
        ("teacher", lambda h: h[0, 0] > 1.5, jnp.nan),
        ("teacher", lambda h: h[0, 0] > 1.5, jnp.inf),
        ("student", lambda h: jnp.abs(h[0, 0]) < 1e-3, jnp.nan),
    ],
)
def test_functions_are_checked_on_many_fields(which, condition, value):
    def sometimes(h):
        return jnp.where(condition(h), value, softmax(h))

    with pytest.raises(dp.InvalidInput) as caught:
        dp.Model(**(GOOD | {which: sometimes}))
    match = re.match(
        rf"{which} = 'sometimes': .* not finite at h = \[ ?\[ *(\S+)\]", str(caught.value)
    )
    assert bool(condition(np.full((1, 1), float(match[1]))))


def test_one_sigma_stands_for_all_tokens():
    model = dp.Model(**GOOD, sigma=0.7)
    np.testing.assert_array_equal(model.sigma, [0.7, 0.7])
    np.testing.assert_allclose(model.rho, [0.49, 0.49])


def test_loss_of_one_sentence_is_the_weighted_square_of_the_difference(rng):
    model = three_tokens()
    x, target = rng.normal(size=(3, 1)), rng.normal(size=(3, 3))
    difference = target - np.asarray(softmax(x))
    expected = 0.5 * np.trace(difference @ np.diag(model.sigma**2) @ difference.T)
    np.testing.assert_allclose(model.energy(x, target), expected, rtol=1e-13)


def test_a_model_without_positions_has_none():
    model = dp.Model(teacher=identity, student=identity, length=1)
    np.testing.assert_array_equal(model.positions, [[0.0]])
