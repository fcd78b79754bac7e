"""L-BFGS on projections: the same steps as on weights, with two products with the tokens each."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dotphase.training.loop import Objective, Schedule
from dotphase.training.optimizers.lbfgs import HISTORY_SIZE, MAX_LINE_SEARCH_STEPS, lbfgs

STEPS = 12


def loss(weights, fields):
    """Not convex, and with several evaluations per line search."""
    return jnp.sum(jnp.cos(3 * fields) + 0.3 * fields**2) + 0.1 * jnp.sum(weights**2)


@pytest.fixture(scope="module")
def objective():
    with jax.enable_x64(True):
        z = jnp.asarray(np.random.default_rng(0).normal(size=(40, 12)))

        def value_and_gradient(weights):
            return jax.value_and_grad(lambda q: loss(q, (z @ q).T[None]))(weights)

        yield Objective(
            value_and_gradient=value_and_gradient,
            estimate=lambda weights, key, number: value_and_gradient(weights),
            project=lambda weights: (z @ weights).T[None],
            loss=loss,
            collect=lambda force: z.T @ force[0].T,
        )


def method(objective):
    unit = jnp.ones(())
    schedule = Schedule(lr=unit, steps=100 * unit, tolerance=1e-9 * unit, key=None, momentum=unit)
    return lbfgs(objective, schedule)


def first():
    return jnp.asarray(np.random.default_rng(1).normal(size=(12, 1)))


def test_steps_are_those_of_the_search_on_weights(objective):
    """Compare with L-BFGS of Optax, which evaluates the gradient at every point of a search."""
    projected = method(objective)
    search = optax.scale_by_zoom_linesearch(MAX_LINE_SEARCH_STEPS, initial_guess_strategy="one")
    plain = optax.lbfgs(memory_size=HISTORY_SIZE, linesearch=search)

    @jax.jit
    def reference(weights, state):
        value, gradient = objective.value_and_gradient(weights)
        evaluated = {"grad": gradient, "value_fn": lambda q: objective.value_and_gradient(q)[0]}
        updates, state = plain.update(gradient, state, weights, value=value, **evaluated)
        return optax.apply_updates(weights, updates), state

    step = jax.jit(projected.step)
    weights, state, point = first(), plain.init(first()), projected.initialize(first())
    losses = [float(point.value)]
    for count in range(STEPS):
        weights, state = reference(weights, state)
        point = step(point, count)
        np.testing.assert_allclose(point.weights, weights, rtol=1e-7, atol=1e-10)
        # The updated projections stay those of the weights.
        value, gradient = objective.value_and_gradient(point.weights)
        assert float(point.value) == pytest.approx(float(value), rel=1e-12)
        np.testing.assert_allclose(point.gradient, gradient, rtol=1e-8, atol=1e-10)
        losses.append(float(value))
    assert np.all(np.diff(losses) < 0)


def test_a_step_has_two_products_with_the_tokens(objective):
    calls = []

    def counted(name):
        def call(*arguments):
            calls.append(name)
            return getattr(objective, name)(*arguments)

        return call

    operations = ("value_and_gradient", "estimate", "project", "collect")
    projected = method(objective._replace(**{name: counted(name) for name in operations}))
    point = jax.eval_shape(projected.initialize, first())
    assert calls == ["project", "collect"]
    calls.clear()
    jax.eval_shape(projected.step, point, 0)
    assert calls == ["project", "collect"]
