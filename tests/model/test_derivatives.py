"""Derivatives of losses: closed forms against automatic differentiation."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.model.attention import untied_attention
from dotphase.model.derivatives import (
    by_autodiff,
    is_softmax_attention,
    loss_derivatives,
    softmax_loss,
    untied_loss,
)
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.taylor import differentiate
from models import softmax

#: Up to four entries are unrolled, more are arrays.
SIZES = [(2, 1), (2, 2), (2, 3), (3, 1), (4, 1), (5, 2)]


def _model(length, rank, student=dp.softmax_attention):
    return dp.Model(
        teacher=dp.softmax_attention,
        student=student,
        length=length,
        student_rank=rank,
        sigma=np.linspace(0.4, 0.8, length),
        positions=np.eye(length),
    )


def untied_softmax(h):
    rank = h.shape[1] // 2
    return jax.nn.softmax(h[:, :rank] @ h[:, rank:].T, axis=-1)


CASES = [(*size, dp.softmax_attention, softmax) for size in SIZES]
CASES += [(*size, untied_attention, untied_softmax) for size in [(2, 2), (2, 4), (3, 2)]]


@pytest.mark.parametrize(("length", "rank", "student", "products"), CASES)
def test_closed_form_equals_autodiff(length, rank, student, products, rng):
    """Values, gradients and Hessians at small, common and large scores."""
    model = _model(length, rank, student)
    count = 60
    scale = np.repeat([0.1, 1.0, 8.0], count // 3)
    x = rng.normal(size=(length * rank, count)) * scale
    target = rng.normal(size=(length, length, count))
    # Automatic differentiation of matrix products shares no code with the closed form.
    automatic = by_autodiff(_model(length, rank, products))
    assert {softmax_loss, untied_loss} & set(_uses(loss_derivatives(model)))
    closed_form = jax.jit(vmap_points(loss_derivatives(model)))(x, target)
    expected = jax.jit(vmap_points(automatic))(x, target)
    for one, other in zip(closed_form, expected, strict=True):
        one, other = np.asarray(jnp.asarray(one)), np.asarray(other)
        size = 1e-11 * (1 + np.abs(other).reshape(-1, count).max(axis=0))
        assert np.all(np.abs(one - other) <= size)


@pytest.mark.parametrize(("length", "rank"), SIZES)
def test_closed_form_serves_every_softmax(length, rank, paper):
    for student in (dp.softmax_attention, softmax):
        assert softmax_loss in _uses(loss_derivatives(_model(length, rank, student)))


def _uses(function):
    return [function.__globals__.get(name) for name in function.__code__.co_names]


def test_only_certain_softmax_attention_is_recognized():
    def sharper(h):
        return jax.nn.softmax(2 * h @ h.T, axis=-1)

    def clipped(h):  # the same at common scores, not at large ones
        return jax.nn.softmax(jnp.clip(h @ h.T, -1e3, 1e3), axis=-1)

    def along_columns(h):
        return jax.nn.softmax(h @ h.T, axis=0)

    def broken(h):
        raise RuntimeError

    assert is_softmax_attention(lambda h: jax.nn.softmax(jnp.dot(h, h.T)), 3, 2)
    for student, rank in product((sharper, clipped, along_columns, broken), (1, 2)):
        assert not is_softmax_attention(student, 3, rank)


def test_differentiate_a_known_function(rng):
    matrix = rng.normal(size=(3, 3))
    matrix = matrix + matrix.T
    x = rng.normal(size=3)
    derivatives = differentiate(lambda z: 0.5 * z @ matrix @ z + z[0] ** 3, x)
    curvature = matrix + np.diag([6 * x[0], 0, 0])
    np.testing.assert_allclose(derivatives.value, 0.5 * x @ matrix @ x + x[0] ** 3)
    np.testing.assert_allclose(derivatives.gradient, matrix @ x + [3 * x[0] ** 2, 0, 0])
    np.testing.assert_allclose(derivatives.hessian, curvature)
