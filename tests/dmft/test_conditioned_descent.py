"""Conditioned descent is gradient descent on matrices that could have been drawn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.dmft import conditioned_descent
from dotphase.dmft.conditioned_descent import Inputs, UpdateRule
from dotphase.dmft.initialization import (
    finite_d_initialization,
    free_directions,
    limit_initialization,
)
from dotphase.finite_d.initialization import start_components

STEPS, CAPACITY = 6, 8

initial_state = eqx.filter_jit(conditioned_descent.initial_state)
advance = eqx.filter_jit(conditioned_descent.advance)


def descend(model, initial, n, d, *, exact=False, momentum=0.0, fraction=1.0, dtype=np.float64):
    """Inputs and final state of a small descent."""
    rule = UpdateRule(exact, fraction < 1, *map(jnp.asarray, (float(d), momentum, fraction)))
    rng = np.random.default_rng(3)
    heads = jnp.asarray(rng.standard_normal((model.length, model.teacher_rank, n)))
    points = jnp.asarray(rng.standard_normal((2, model.length, model.student_rank, n)))
    inputs = Inputs(model, initial, rule, points, jnp.full(CAPACITY, 2.0), jax.random.key(5))
    state = initial_state(
        model, initial, rule, heads, heads[0, :0], points[0], CAPACITY, np.dtype(dtype)
    )
    return inputs, advance(inputs, state, jnp.asarray(STEPS + 1))


def matrices(state):
    """Drawn part of Z_l, tokens first."""
    tokens = zip(state.fields, state.force_basis, state.images, strict=True)
    return jnp.stack([xi.T @ state.weight_basis + g.T @ b for xi, g, b in tokens])


def plain_descent(inputs, z, d):
    """Gradient descent on explicit matrices."""
    model, initial = inputs.model, inputs.initial
    base, dims = initial.weights.shape[1], z.shape[2]
    pad = ((0, 0), (0, dims - base))
    teacher, positions, w = (
        jnp.pad(part, pad) for part in (initial.teacher, initial.positions, initial.weights)
    )
    free = jnp.pad(initial.free, pad, constant_values=1.0)
    sigma = jnp.asarray(model.sigma)[:, None, None]
    heads = sigma * jnp.einsum("lnd,td->ltn", z, teacher)
    target = jax.vmap(model.teacher, -1, -1)(heads)

    @jax.jit
    @jax.value_and_grad
    def loss(w):
        h = sigma * jnp.einsum("lnd,rd->lrn", z, w) + (positions @ w.T)[..., None]
        losses = jax.vmap(model.energy, (-1, -1))(h, target)
        return jnp.sum(losses) / d + model.ridge / 2 * jnp.sum(w**2)

    values, thetas, before = [], [], w
    for _ in range(STEPS + 1):
        value, gradient = loss(w)
        values.append(value)
        thetas.append(w @ teacher.T)
        step = -inputs.lr[0] * free * gradient + inputs.rule.momentum * (w - before)
        w, before = w + step, w
    return np.asarray(values), np.asarray(thetas)


@pytest.mark.parametrize(("exact", "momentum"), [(False, 0.0), (False, 0.5), (True, 0.5)])
def test_a_descent_is_gradient_descent_on_the_matrices_it_has_drawn(three_tokens, exact, momentum):
    parts = start_components(three_tokens, dp.start_from(theta=[[0.1], [0.0]], m=[0.2, 0.1]))
    parts = parts._replace(orthogonal=np.array([[0.3, 0.1], [0.1, 0.2]]))
    initial = limit_initialization(three_tokens, parts)
    inputs, state = descend(three_tokens, initial, 96, 64, exact=exact, momentum=momentum)
    values, thetas = plain_descent(inputs, matrices(state), 64)
    np.testing.assert_allclose(state.records.train_loss[: STEPS + 1], values, rtol=1e-10)
    np.testing.assert_allclose(state.records.theta[: STEPS + 1], thetas, rtol=1e-9, atol=1e-12)


def test_bases_are_orthonormal_and_fresh_fields_orthogonal_to_the_forces_before(paper):
    initial = limit_initialization(paper, start_components(paper, "semantic"))
    _, state = descend(paper, initial, 128, 128)
    for basis in (state.weight_basis, *state.force_basis):
        gram = np.asarray(basis @ basis.T)
        used = np.diag(gram) > 0.5
        assert used.sum() > STEPS
        np.testing.assert_allclose(gram[np.ix_(used, used)], np.eye(used.sum()), atol=1e-12)
    for fields, forces in zip(state.fields, state.force_basis, strict=True):
        products = np.asarray(fields @ forces.T)
        # Row t + 1 + k was drawn after the forces of steps < k.
        for step in range(1, STEPS + 1):
            np.testing.assert_allclose(products[1 + step, :step], 0, atol=1e-10)


def test_the_exact_law_has_the_lengths_and_spread_of_a_gaussian_matrix(paper):
    n, d = 400, 300
    initial = finite_d_initialization(paper, _random, d, jax.random.key(0))
    _, state = descend(paper, initial, n, d, exact=True)
    images = np.concatenate([np.asarray(part)[: STEPS + 1] for part in state.images])
    fields = np.concatenate([np.asarray(part)[1 : STEPS + 2] for part in state.fields])
    np.testing.assert_allclose((images**2).sum(axis=1).mean(), d, rtol=0.1)
    np.testing.assert_allclose((fields**2).sum(axis=1).mean(), n, rtol=0.1)


def _random(key, teacher_weights, positions):
    return 0.3 * jax.random.normal(key, teacher_weights.shape)


def test_at_finite_d_coordinates_keep_all_overlaps(three_tokens):
    def start(key, teacher_weights, positions):
        return jax.random.normal(key, (teacher_weights.shape[0], 2))

    initial = finite_d_initialization(three_tokens, start, 50, jax.random.key(1))
    gram = np.asarray(initial.positions @ initial.positions.T)
    np.testing.assert_allclose(gram, three_tokens.positions, atol=1e-12)
    size = np.asarray(initial.weights @ initial.weights.T)
    assert abs(np.trace(size) / 2 - 1) < 0.5
    assert abs(float((initial.teacher @ initial.teacher.T)[0, 0]) - 1) < 0.5


@pytest.mark.parametrize(
    ("start", "mask"),
    [("semantic", [1, 0, 1]), ("positional", [0, 1, 1]), ("random", [0, 0, 1])],
)
def test_symmetry_keeps_overlaps_at_zero(paper, start, mask):
    free = free_directions(paper, start_components(paper, start), 1)
    assert free.tolist() == [mask]


def test_all_overlaps_are_free_if_the_start_is_not_symmetric(paper):
    free = free_directions(paper, start_components(paper, dp.start_from(theta=0.01, m=0.1)), 1)
    assert free.tolist() == [[1, 1, 1]]


def test_a_history_in_single_precision_is_the_same_to_its_precision(paper):
    initial = limit_initialization(paper, start_components(paper, "semantic"))
    _, double = descend(paper, initial, 128, 128)
    _, single = descend(paper, initial, 128, 128, dtype=np.float32)
    np.testing.assert_allclose(single.records.train_loss, double.records.train_loss, rtol=1e-5)


def test_the_capacity_can_grow_during_a_descent(paper):
    initial = limit_initialization(paper, start_components(paper, "semantic"))
    inputs, expected = descend(paper, initial, 64, 64)
    model, rule, points = inputs.model, inputs.rule, inputs.first_fields
    rng = np.random.default_rng(3)
    heads = jnp.asarray(rng.standard_normal((2, 1, 64)))
    state = initial_state(
        model, initial, rule, heads, heads[0, :0], points[0], 4, np.dtype(np.float64)
    )
    state = advance(inputs, state, jnp.asarray(3))
    state = advance(
        inputs, conditioned_descent.enlarge(model, state, CAPACITY), jnp.asarray(STEPS + 1)
    )
    np.testing.assert_allclose(state.records.train_loss, expected.records.train_loss, rtol=1e-12)
