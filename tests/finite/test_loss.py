from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase._numerics.taylor import differentiate
from dotphase.finite import loss
from dotphase.finite.prepare import prepare


def naive_loss(model, data, weights):
    """The training loss as it is written: labels, answers, squared distance, ridge."""
    d = weights.shape[0]

    def sentence(x):
        y = model.teacher(x @ data.teacher_weights / jnp.sqrt(d)) @ x
        z = x + data.positions
        return jnp.sum((y - model.student(z @ weights / jnp.sqrt(d)) @ z) ** 2) / (2 * d)

    return jnp.sum(jax.vmap(sentence)(data.tokens)) + 0.5 * model.ridge * jnp.sum(weights**2)


@eqx.filter_jit
def jitted(function, *arguments):
    """One compiled call instead of many small ones."""
    return function(*arguments)


def reduce(model, data):
    return jitted(loss.reduce, model, data)


@pytest.fixture(params=["paper", "three_tokens"])
def problem(request):
    model = request.getfixturevalue(request.param)
    data = dp.sample(model, d=12, n=17, key=0)
    weights = jnp.asarray(np.random.default_rng(1).standard_normal((12, model.student_rank)))
    return model, data, weights


def test_loss_and_gradient_are_those_of_the_full_graph(problem):
    model, data, weights = problem
    value, gradient = jitted(loss.value_and_gradient, model, reduce(model, data), weights)
    expected, slope = jax.jit(jax.value_and_grad(lambda q: naive_loss(model, data, q)))(weights)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12 * np.abs(slope).max())


def test_hessian_product_is_that_of_the_full_graph(problem):
    model, data, weights = problem
    some = reduce(model, data)
    direction = jnp.asarray(np.random.default_rng(2).standard_normal(weights.shape))
    x = loss.project(some.z, weights)
    found = jitted(loss.hessian_product, model, some, x, direction)
    slope = jax.grad(lambda q: naive_loss(model, data, q))
    _, expected = jax.jit(lambda q, v: jax.jvp(slope, (q,), (v,)))(weights, direction)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_padding_counts_for_nothing(problem):
    """The loss of the first sentences of a larger set is that of a set that has no others."""
    model, data, weights = problem
    few = data._replace(tokens=data.tokens[:11])
    padded = jitted(prepare, model, data, jnp.asarray(11)).reduced
    for found, expected in zip(
        jitted(loss.value_and_gradient, model, padded, weights),
        jitted(loss.value_and_gradient, model, reduce(model, few), weights),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_no_array_of_the_size_of_the_tokens_is_made(paper):
    """Only the products with z touch something of size n L d; their results are small."""
    data = dp.sample(paper, d=12, n=17, key=0)
    some = reduce(paper, data)
    weights = jnp.ones((12, 1))
    jaxpr = jax.make_jaxpr(lambda q: loss.value_and_gradient(paper, some, q))(weights)
    size = 17 * 2 * 12
    made = [
        (equation.primitive.name, variable.aval.size)
        for equation in jaxpr.jaxpr.eqns
        for variable in equation.outvars
        if equation.primitive.name != "reshape"
    ]
    assert max(count for _, count in made) < size
    touching = [
        equation
        for equation in jaxpr.jaxpr.eqns
        if equation.primitive.name == "dot_general"
        and any(variable.aval.size == size for variable in equation.invars)
    ]
    assert len(touching) == 2


def test_closed_form_of_the_sentence_loss(problem):
    model, data, _ = problem
    length, rank = model.length, model.student_rank
    form = jax.tree.map(lambda leaf: leaf[..., 0], reduce(model, data).form)
    x = jnp.asarray(np.random.default_rng(0).standard_normal(length * rank))
    closed = loss.sentence_derivatives(model.student, length, rank)
    assert closed is loss.softmax_loss
    found = jax.jit(closed)(x, form)

    @jax.jit
    def by_autodiff(x, form):
        return differentiate(
            lambda y: loss.sentence_loss(model.student, y.reshape(length, rank), form), x
        )

    expected = by_autodiff(x, form)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(jnp.asarray(mine), theirs, rtol=1e-10, atol=1e-13)
    assert found.value >= 0
