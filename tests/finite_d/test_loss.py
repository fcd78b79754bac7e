from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d import loss
from dotphase.finite_d.preparation import prepare
from dotphase.numerics.taylor import differentiate

#: Number of sentences that are not padding.
FEW = 11


def naive_loss(model, data, weights):
    """Training loss by its definition: labels, outputs, squared distance, ridge."""
    d = weights.shape[0]

    def sentence(x):
        y = model.teacher(x @ data.teacher_weights / jnp.sqrt(d)) @ x
        z = x + data.positions
        return jnp.sum((y - model.student(z @ weights / jnp.sqrt(d)) @ z) ** 2) / (2 * d)

    return jnp.sum(jax.vmap(sentence)(data.tokens)) + 0.5 * model.ridge * jnp.sum(weights**2)


@eqx.filter_jit
def compare_with_autodiff(model, data, weights, direction):
    """Results of the package and of the full graph, compiled together."""
    length, rank = model.length, model.student_rank
    reduced = loss.reduce(model, data)
    padded = prepare(model, data, jnp.asarray(FEW)).reduced
    few = data._replace(tokens=data.tokens[:FEW])
    projections = loss.project(reduced.z, weights)
    slope = jax.value_and_grad(lambda q: naive_loss(model, data, q))
    (value, gradient), (_, change) = jax.jvp(slope, (weights,), (direction,))
    form = jax.tree.map(lambda leaf: leaf[..., 0], reduced.form)
    x = direction[:length].ravel()
    return {
        "loss": (loss.value_and_gradient(model, reduced, weights), (value, gradient)),
        "product": (loss.hessian_product(model, reduced, projections, direction), change),
        "padded": (
            loss.value_and_gradient(model, padded, weights),
            jax.value_and_grad(lambda q: naive_loss(model, few, q))(weights),
        ),
        "sentence": (
            loss.sentence_derivatives(model)(x, form),
            differentiate(
                lambda y: loss.sentence_loss(model, y.reshape(length, rank), form), x
            ),
        ),
    }  # fmt: skip


@pytest.fixture(scope="module", params=["paper", "three_tokens"])
def pairs(request):
    """Pairs (result, expected result) by name."""
    model = request.getfixturevalue(request.param)
    with jax.enable_x64(True):
        data = dp.sample(model, d=12, n=17, key=0)
        shape = (2, 12, model.student_rank)
        weights, direction = jnp.asarray(np.random.default_rng(1).standard_normal(shape))
        closed = loss.sentence_derivatives(model)
        assert closed is loss.softmax_loss
        return compare_with_autodiff(model, data, weights, direction)


def test_loss_and_gradient_are_those_of_the_full_graph(pairs):
    (value, gradient), (expected, slope) = pairs["loss"]
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12 * np.abs(slope).max())


def test_hessian_product_is_that_of_the_full_graph(pairs):
    product, expected = pairs["product"]
    np.testing.assert_allclose(product, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_padding_has_no_weight(pairs):
    """The loss of the first sentences of a larger data set is that of a data set of these alone."""
    for actual, expected in zip(*pairs["padded"], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_closed_form_of_the_sentence_loss(pairs):
    closed, by_autodiff = pairs["sentence"]
    for actual, expected in zip(closed, by_autodiff, strict=True):
        np.testing.assert_allclose(jnp.asarray(actual), expected, rtol=1e-10, atol=1e-13)
    assert closed.value >= 0


def test_no_array_of_the_size_of_the_tokens_is_made(paper):
    """Only two products have an operand of size n L d, and their results are small."""
    data = dp.sample(paper, d=12, n=17, key=0)
    reduced = eqx.filter_jit(loss.reduce)(paper, data)
    weights = jnp.ones((12, 1))
    jaxpr = jax.make_jaxpr(lambda q: loss.value_and_gradient(paper, reduced, q))(weights)
    size = 17 * 2 * 12
    made = [
        (equation.primitive.name, variable.aval.size)
        for equation in jaxpr.jaxpr.eqns
        for variable in equation.outvars
        if equation.primitive.name != "reshape"
    ]
    assert max(count for _, count in made) < size
    products = [
        equation
        for equation in jaxpr.jaxpr.eqns
        if equation.primitive.name == "dot_general"
        and any(variable.aval.size == size for variable in equation.invars)
    ]
    assert len(products) == 2


def test_long_sentences_have_the_loss_of_the_full_graph():
    """Five tokens: the code works on arrays instead of single entries."""
    model = dp.positional_semantic_length(5)
    data = dp.sample(model, d=12, n=7, key=0)
    weights = jnp.asarray(np.random.default_rng(1).standard_normal((12, 1)))

    @eqx.filter_jit
    def both_losses(model, data, weights):
        result = loss.value_and_gradient(model, loss.reduce(model, data), weights)
        return result, jax.value_and_grad(lambda q: naive_loss(model, data, q))(weights)

    (value, gradient), (expected, slope) = both_losses(model, data, weights)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-12 * np.abs(slope).max())


def test_the_limit_of_a_form_is_the_loss_of_the_theory(three_tokens):
    rng = np.random.default_rng(1)
    x, target = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    form = loss.limit_form(three_tokens, jnp.asarray(target))
    value = loss.sentence_loss(three_tokens, jnp.asarray(x), form)
    assert float(value) == pytest.approx(float(three_tokens.energy(x, target)), rel=1e-12)
