"""L-BFGS on projections: the steps of L-BFGS on weights, at two products with the tokens each."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dotphase.training.loop import Objective, Schedule
from dotphase.training.optimizers.lbfgs import HISTORY_SIZE, MAX_LINE_SEARCH_STEPS, lbfgs

STEPS = 12


def loss(weights, fields):
    """Not convex, and of a strength that takes several looks along a line."""
    return jnp.sum(jnp.cos(3 * fields) + 0.3 * fields**2) + 0.1 * jnp.sum(weights**2)


@pytest.fixture(scope="module")
def objective():
    with jax.enable_x64(True):
        z = jnp.asarray(np.random.default_rng(0).normal(size=(40, 12)))

        def whole(weights):
            return jax.value_and_grad(lambda q: loss(q, (z @ q).T[None]))(weights)

        yield Objective(
            value_and_gradient=whole,
            estimate=lambda weights, key: whole(weights),
            project=lambda weights: (z @ weights).T[None],
            loss=loss,
            collect=lambda force: z.T @ force[0].T,
        )


def method(objective):
    one = jnp.ones(())
    schedule = Schedule(lr=one, steps=100 * one, tolerance=1e-9 * one, key=None, momentum=one)
    return lbfgs(objective, schedule)


def first():
    return jnp.asarray(np.random.default_rng(1).normal(size=(12, 1)))


def test_steps_are_those_of_the_search_on_weights(objective):
    """Against Optax's own L-BFGS, which evaluates loss and gradient anew at every look."""
    ours = method(objective)
    search = optax.scale_by_zoom_linesearch(MAX_LINE_SEARCH_STEPS, initial_guess_strategy="one")
    plain = optax.lbfgs(memory_size=HISTORY_SIZE, linesearch=search)

    @jax.jit
    def reference(weights, state):
        value, gradient = objective.value_and_gradient(weights)
        known = {"grad": gradient, "value_fn": lambda q: objective.value_and_gradient(q)[0]}
        updates, state = plain.update(gradient, state, weights, value=value, **known)
        return optax.apply_updates(weights, updates), state

    step = jax.jit(ours.step)
    weights, state, point = first(), plain.init(first()), ours.initialize(first())
    losses = [float(point.value)]
    for count in range(STEPS):
        weights, state = reference(weights, state)
        point = step(point, count)
        np.testing.assert_allclose(point.weights, weights, rtol=1e-7, atol=1e-10)
        # Projections that are carried along stay those of the weights.
        value, gradient = objective.value_and_gradient(point.weights)
        assert float(point.value) == pytest.approx(float(value), rel=1e-12)
        np.testing.assert_allclose(point.gradient, gradient, rtol=1e-8, atol=1e-10)
        losses.append(float(value))
    assert np.all(np.diff(losses) < 0)


def test_a_step_touches_the_tokens_twice(objective):
    calls = []

    def counted(name):
        def call(*arguments):
            calls.append(name)
            return getattr(objective, name)(*arguments)

        return call

    touching = ("value_and_gradient", "estimate", "project", "collect")
    ours = method(objective._replace(**{name: counted(name) for name in touching}))
    point = jax.eval_shape(ours.initialize, first())
    assert calls == ["project", "collect"]
    calls.clear()
    jax.eval_shape(ours.step, point, 0)
    assert calls == ["project", "collect"]
