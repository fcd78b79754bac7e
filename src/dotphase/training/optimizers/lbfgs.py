"""``lbfgs``: L-BFGS with a line search, which chooses the size of its steps.

The loss depends on the weights Q through their projections X = z Q/sqrt d, which are linear in
Q. The line search works on pairs (Q, X): once the direction P is projected, any step along it costs
n numbers and no product with the tokens. An iteration therefore costs two such products, one for
the direction and one for the gradient at the end of the search, for any number of evaluations.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from dotphase.finite_d.loss import Weights
from dotphase.training.loop import Fields, Method, Objective, Optimizer, Point, Schedule

#: Number of past steps that approximate the Hessian.
HISTORY_SIZE = 10
#: Maximum number of evaluations in one line search.
MAX_LINE_SEARCH_STEPS = 20
#: Number of steps without progress after which a run has stalled.
PATIENCE = 8

Pair = tuple[Weights, Fields]


def lbfgs(objective: Objective, schedule: Schedule) -> Method:
    """Optax's L-BFGS and zoom line search; the `lr` of the schedule is not used."""
    metric = optax.scale_by_lbfgs(memory_size=HISTORY_SIZE)
    search = optax.scale_by_zoom_linesearch(
        max_linesearch_steps=MAX_LINE_SEARCH_STEPS, initial_guess_strategy="one"
    )

    def value(pair: Pair) -> Array:
        return objective.loss(*pair)

    def gradient_of(slopes: Pair) -> Weights:
        return slopes[0] + objective.collect(slopes[1])

    def initialize(weights: Weights) -> Point:
        pair = weights, objective.project(weights)
        loss, slopes = jax.value_and_grad(value)(pair)
        state = metric.init(weights), pair[1], slopes, jnp.zeros((), int), jnp.inf * loss
        return Point(weights, loss, gradient_of(slopes), state)

    def step(point: Point, count: Array) -> Point:
        history, fields, slopes, n_idle, best = point.state
        uphill, history = metric.update(point.gradient, history, point.weights)
        direction = -uphill, -objective.project(uphill)
        pair = point.weights, fields
        evaluated = {"value": point.value, "grad": slopes, "value_fn": value}
        change, end = search.update(direction, search.init(pair), pair, **evaluated)
        weights, fields = optax.apply_updates(pair, change)
        # The line search has already evaluated the loss at its last point.
        loss, slopes = end.value, end.grad
        gradient = gradient_of(slopes)
        slope = jnp.linalg.norm(gradient)
        small = 4 * np.finfo(loss.dtype).eps * jnp.abs(point.value)
        progress = (point.value - loss > small) | (slope < 0.99 * best)
        n_idle = jnp.where(progress, 0, n_idle + 1)
        state = history, fields, slopes, n_idle, jnp.minimum(best, slope)
        return Point(weights, loss, gradient, state)

    return Method(initialize, step, lambda point: point.state[3] >= PATIENCE)


OPTIMIZER = Optimizer(lbfgs, steps=2000, lr=None, endpoint_steps=1000)
