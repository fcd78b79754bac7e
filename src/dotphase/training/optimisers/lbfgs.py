"""``lbfgs``: L-BFGS with a line search, which chooses the size of its steps itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from dotphase.finite.loss import Weights
from dotphase.training.loop import Method, Objective, Optimiser, Point, Schedule

#: Past steps that are remembered.
MEMORY = 10
#: Most evaluations in one line search.
LINE_SEARCH = 20
#: Steps without any progress after which a run is given up.
PATIENCE = 8


def lbfgs(objective: Objective, schedule: Schedule) -> Method:
    """Optax's L-BFGS with its zoom line search; the `lr` of the schedule is not used."""
    search = optax.scale_by_zoom_linesearch(
        max_linesearch_steps=LINE_SEARCH, initial_guess_strategy="one"
    )
    transform = optax.lbfgs(memory_size=MEMORY, linesearch=search)

    @jax.custom_jvp
    def value(weights: Weights) -> Array:
        return objective.value_and_gradient(weights)[0]

    @value.defjvp
    def value_jvp(primals: tuple[Weights], tangents: tuple[Weights]) -> tuple[Array, Array]:
        # The gradient is known; differentiating through its two products would cost more.
        loss, gradient = objective.value_and_gradient(primals[0])
        return loss, jnp.sum(gradient * tangents[0])

    def begin(weights: Weights) -> Point:
        loss, gradient = objective.value_and_gradient(weights)
        state = transform.init(weights)
        return Point(weights, loss, gradient, (state, jnp.zeros((), int), jnp.inf * loss))

    def step(point: Point, count: Array) -> Point:
        state, idle, best = point.memory
        known = {"value": point.value, "grad": point.gradient, "value_fn": value}
        updates, state = transform.update(point.gradient, state, point.weights, **known)
        weights = optax.apply_updates(point.weights, updates)
        # The line search has evaluated the loss where it stopped, and remembers it.
        loss = optax.tree_utils.tree_get(state, "value")
        gradient = optax.tree_utils.tree_get(state, "grad")
        slope = jnp.linalg.norm(gradient)
        small = 4 * np.finfo(loss.dtype).eps * jnp.abs(point.value)
        progress = (point.value - loss > small) | (slope < 0.99 * best)
        idle = jnp.where(progress, 0, idle + 1)
        return Point(weights, loss, gradient, (state, idle, jnp.minimum(best, slope)))

    return Method(begin, step, lambda point: point.memory[1] >= PATIENCE)


OPTIMISER = Optimiser(lbfgs, steps=2000, lr=None, end_steps=1000)
