from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.loss import Reduced
from dotphase.finite_d.measurement import diagnose_run
from dotphase.finite_d.preparation import Prepared
from dotphase.model.nonfinite import diagnose_functions
from dotphase.numerics.quadrature import gauss_hermite
from models import softmax

D = 4


def beyond_five(h):
    return jnp.where(h[0, 0] > 5, jnp.nan, softmax(h))


def rough(h):
    return softmax(h) + jnp.sqrt(jnp.abs(h - h))


@pytest.mark.parametrize(
    ("which", "function", "size", "blamed"),
    [
        ("teacher", beyond_five, 40.0, "the teacher is not finite at h = "),
        ("student", beyond_five, 40.0, "the student is not finite at h = "),
        ("student", rough, 1.0, "the derivative of the student is not finite at h = "),
        ("student", softmax, np.nan, "the weights are not finite"),
        ("student", softmax, 1.0, "teacher and student are finite"),
    ],
)
def test_what_is_not_finite_is_named(which, function, size, blamed):
    model = dp.Model(**{"teacher": softmax, "student": softmax, "length": 2, which: function})
    rng = np.random.default_rng(0)
    weights = {"teacher": np.ones((D, 1)), "student": np.ones((D, 1))}
    weights[which] = size * weights[which]
    tokens = Reduced(rng.normal(size=(64, 2, D)), None, None)  # of the loss nothing is asked
    data = Prepared(tokens, weights["teacher"], np.zeros((2, D)), None)
    assert diagnose_run(model, data, weights["student"], gauss_hermite(3, 4)).startswith(blamed)


def test_a_function_is_compiled_once_however_often_it_is_looked_at(paper):
    fields, traced = np.ones((2, 1, 8)), []

    def student(h):
        traced.append(h)
        return softmax(h)

    model = paper.replace(student=student)
    assert diagnose_functions(model, [fields], [fields]) is None
    before = len(traced)
    assert diagnose_functions(model, [fields], [fields]) is None
    assert len(traced) == before
