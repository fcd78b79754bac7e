"""``lbfgs``: L-BFGS with a line search, which chooses the size of its steps itself.

The loss depends on the weights Q through their projections X = z Q/sqrt d, which are linear in
Q. The line search works on pairs (Q, X): once the direction P is projected, any step along it costs
n numbers and no product with the tokens. An iteration costs two such products, one for the
direction and one for the gradient where the search ends, however often the search looks.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from dotphase.finite_d.loss import Weights
from dotphase.training.loop import Fields, Method, Objective, Optimizer, Point, Schedule

#: Past steps that are remembered.
MEMORY = 10
#: Most evaluations in one line search.
LINE_SEARCH = 20
#: Steps without any progress after which a run is given up.
PATIENCE = 8

Pair = tuple[Weights, Fields]


def lbfgs(objective: Objective, schedule: Schedule) -> Method:
    """Optax's L-BFGS and zoom line search; the `lr` of the schedule is not used."""
    metric = optax.scale_by_lbfgs(memory_size=MEMORY)
    search = optax.scale_by_zoom_linesearch(
        max_linesearch_steps=LINE_SEARCH, initial_guess_strategy="one"
    )

    def value(pair: Pair) -> Array:
        return objective.loss(*pair)

    def gradient_of(slopes: Pair) -> Weights:
        return slopes[0] + objective.collect(slopes[1])

    def begin(weights: Weights) -> Point:
        pair = weights, objective.project(weights)
        loss, slopes = jax.value_and_grad(value)(pair)
        memory = metric.init(weights), pair[1], slopes, jnp.zeros((), int), jnp.inf * loss
        return Point(weights, loss, gradient_of(slopes), memory)

    def step(point: Point, count: Array) -> Point:
        state, fields, slopes, idle, best = point.memory
        uphill, state = metric.update(point.gradient, state, point.weights)
        direction = -uphill, -objective.project(uphill)
        pair = point.weights, fields
        known = {"value": point.value, "grad": slopes, "value_fn": value}
        change, found = search.update(direction, search.init(pair), pair, **known)
        weights, fields = optax.apply_updates(pair, change)
        # The line search has evaluated the loss where it stopped, and remembers it.
        loss, slopes = found.value, found.grad
        gradient = gradient_of(slopes)
        slope = jnp.linalg.norm(gradient)
        small = 4 * np.finfo(loss.dtype).eps * jnp.abs(point.value)
        progress = (point.value - loss > small) | (slope < 0.99 * best)
        idle = jnp.where(progress, 0, idle + 1)
        memory = state, fields, slopes, idle, jnp.minimum(best, slope)
        return Point(weights, loss, gradient, memory)

    return Method(begin, step, lambda point: point.memory[3] >= PATIENCE)


OPTIMIZER = Optimizer(lbfgs, steps=2000, lr=None, end_steps=1000)
