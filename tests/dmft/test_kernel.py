"""The kernel is gradient descent on matrices that could have been drawn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.dmft import kernel
from dotphase.dmft.initialization import at_dimension, free_directions, in_the_limit
from dotphase.dmft.kernel import Given, Rule
from dotphase.finite_d.initialization import start_components

STEPS, ROOM = 6, 8

launch, advance = eqx.filter_jit(kernel.launch), eqx.filter_jit(kernel.advance)


def descend(model, begun, n, d, *, exact=False, momentum=0.0, fraction=1.0, dtype=np.float64):
    """A small descent, and everything it was given."""
    rule = Rule(exact, fraction < 1, *map(jnp.asarray, (float(d), momentum, fraction)))
    rng = np.random.default_rng(3)
    heads = jnp.asarray(rng.standard_normal((model.length, model.teacher_rank, n)))
    points = jnp.asarray(rng.standard_normal((2, model.length, model.student_rank, n)))
    given = Given(model, begun, rule, points, jnp.full(ROOM, 2.0), jax.random.key(5))
    state = launch(model, begun, rule, heads, heads[0, :0], points[0], ROOM, np.dtype(dtype))
    return given, advance(given, state, jnp.asarray(STEPS + 1))


def matrices(state):
    """What is known of Z_l, tokens first."""
    pairs = zip(state.fields, state.left, state.images, strict=True)
    return jnp.stack([seen.T @ state.right + left.T @ images for seen, left, images in pairs])


def plain_descent(given, z, d):
    """Gradient descent on explicit matrices."""
    model, begun = given.model, given.begun
    base, dims = begun.weights.shape[1], z.shape[2]
    pad = ((0, 0), (0, dims - base))
    teacher, positions, w = (
        jnp.pad(part, pad) for part in (begun.teacher, begun.positions, begun.weights)
    )
    free = jnp.pad(begun.free, pad, constant_values=1.0)
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
        step = -given.lr[0] * free * gradient + given.rule.momentum * (w - before)
        w, before = w + step, w
    return np.asarray(values), np.asarray(thetas)


@pytest.mark.parametrize(("exact", "momentum"), [(False, 0.0), (False, 0.5), (True, 0.5)])
def test_it_is_gradient_descent_on_the_matrices_it_has_drawn(three_tokens, exact, momentum):
    parts = start_components(three_tokens, dp.start_from(theta=[[0.1], [0.0]], m=[0.2, 0.1]))
    parts = parts._replace(rest=np.array([[0.3, 0.1], [0.1, 0.2]]))
    begun = in_the_limit(three_tokens, parts)
    given, state = descend(three_tokens, begun, 96, 64, exact=exact, momentum=momentum)
    values, thetas = plain_descent(given, matrices(state), 64)
    np.testing.assert_allclose(state.records.train_loss[: STEPS + 1], values, rtol=1e-10)
    np.testing.assert_allclose(state.records.theta[: STEPS + 1], thetas, rtol=1e-9, atol=1e-12)


def test_bases_are_orthonormal_and_fresh_fields_orthogonal_to_the_forces_before(paper):
    begun = in_the_limit(paper, start_components(paper, "semantic"))
    _, state = descend(paper, begun, 128, 128)
    for basis in (state.right, *state.left):
        gram = np.asarray(basis @ basis.T)
        used = np.diag(gram) > 0.5
        assert used.sum() > STEPS
        np.testing.assert_allclose(gram[np.ix_(used, used)], np.eye(used.sum()), atol=1e-12)
    for seen, left in zip(state.fields, state.left, strict=True):
        across = np.asarray(seen @ left.T)
        # Row t + 1 + k was drawn when the forces of steps < k were known.
        for step in range(1, STEPS + 1):
            np.testing.assert_allclose(across[1 + step, :step], 0, atol=1e-10)


def test_the_exact_law_has_the_lengths_and_spread_of_a_gaussian_matrix(paper):
    n, d = 400, 300
    begun = at_dimension(paper, _random, d, jax.random.key(0))
    _, state = descend(paper, begun, n, d, exact=True)
    images = np.concatenate([np.asarray(part)[: STEPS + 1] for part in state.images])
    fields = np.concatenate([np.asarray(part)[1 : STEPS + 2] for part in state.fields])
    np.testing.assert_allclose((images**2).sum(axis=1).mean(), d, rtol=0.1)
    np.testing.assert_allclose((fields**2).sum(axis=1).mean(), n, rtol=0.1)


def _random(key, teacher_weights, positions):
    return 0.3 * jax.random.normal(key, teacher_weights.shape)


def test_at_finite_d_coordinates_keep_all_overlaps(three_tokens):
    def start(key, teacher_weights, positions):
        return jax.random.normal(key, (teacher_weights.shape[0], 2))

    begun = at_dimension(three_tokens, start, 50, jax.random.key(1))
    gram = np.asarray(begun.positions @ begun.positions.T)
    np.testing.assert_allclose(gram, three_tokens.positions, atol=1e-12)
    size = np.asarray(begun.weights @ begun.weights.T)
    assert abs(np.trace(size) / 2 - 1) < 0.5
    assert abs(float((begun.teacher @ begun.teacher.T)[0, 0]) - 1) < 0.5


@pytest.mark.parametrize(
    ("start", "kept"),
    [("semantic", [1, 0, 1]), ("positional", [0, 1, 1]), ("random", [0, 0, 1])],
)
def test_symmetry_keeps_overlaps_at_zero(paper, start, kept):
    free = free_directions(paper, start_components(paper, start), 1)
    assert free.tolist() == [kept]


def test_nothing_is_kept_at_zero_where_the_start_is_not_symmetric(paper):
    free = free_directions(paper, start_components(paper, dp.start_from(theta=0.01, m=0.1)), 1)
    assert free.tolist() == [[1, 1, 1]]


def test_a_history_in_single_precision_is_the_same_to_its_precision(paper):
    begun = in_the_limit(paper, start_components(paper, "semantic"))
    _, double = descend(paper, begun, 128, 128)
    _, single = descend(paper, begun, 128, 128, dtype=np.float32)
    np.testing.assert_allclose(single.records.train_loss, double.records.train_loss, rtol=1e-5)


def test_room_can_be_widened_on_the_way(paper):
    begun = in_the_limit(paper, start_components(paper, "semantic"))
    given, whole = descend(paper, begun, 64, 64)
    model, rule, points = given.model, given.rule, given.points
    rng = np.random.default_rng(3)
    heads = jnp.asarray(rng.standard_normal((2, 1, 64)))
    state = launch(model, begun, rule, heads, heads[0, :0], points[0], 4, np.dtype(np.float64))
    state = advance(given, state, jnp.asarray(3))
    state = advance(given, kernel.widen(model, state, ROOM), jnp.asarray(STEPS + 1))
    np.testing.assert_allclose(state.records.train_loss, whole.records.train_loss, rtol=1e-12)
