"""Optimisers of the training loss, each one function in a registry.

An optimiser is built from an `Objective` and `Settings` and gives a `Method`: how to begin
at some weights, and how to take one step. It is written for one run; many runs are trained
by `jax.vmap` over all of it. The loop around it (`advance`) stops a run when the gradient
is small enough, when its steps are spent, when it can make no more progress at the
precision it has, or when it diverges.

The loss is ``sum_mu |y - f|^2/(2d) + (ridge/2) |Q|^2`` itself, neither divided by n nor by
d, and a step of gradient descent is ``Q <- Q - lr * gradient`` of exactly that. Its
curvature is of order one hundredth for the paper's model, so that the paper's step of .15
for 5000 steps shrinks errors by e^{-10} or so: with a loss divided by n or d the weights
would hardly move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from dotphase._numerics.outcome import Outcome

Weights = Float[Array, "d r"]

#: Past steps that L-BFGS remembers.
MEMORY = 10
#: Most evaluations in one line search.
LINE_SEARCH = 20
#: Steps without any progress after which L-BFGS gives up.
PATIENCE = 8
#: A loss this many times the one at the start has diverged.
BLOWN_UP = 1e3


class Objective(NamedTuple):
    """What an optimiser may ask of the training loss.

    Attributes
    ----------
    value_and_gradient : of the full loss, at given weights
    estimate : the same from the sentences of a random mini-batch, scaled to all of them
    """

    value_and_gradient: Callable[[Weights], tuple[Float[Array, ""], Weights]]
    estimate: Callable[[Weights, Array], tuple[Float[Array, ""], Weights]]


class Settings(NamedTuple):
    """Numbers of an optimisation, traced: changing them compiles nothing again.

    Attributes
    ----------
    lr : size of a step
    steps : most steps
    tolerance : norm of the gradient at which to stop
    key : randomness of mini-batches
    """

    lr: Float[Array, ""]
    steps: Int[Array, ""]
    tolerance: Float[Array, ""]
    key: Array


class Point(NamedTuple):
    """An iterate: weights, the loss and its gradient there, and what the method remembers."""

    weights: Weights
    value: Float[Array, ""]
    gradient: Weights
    memory: Any


class Method(NamedTuple):
    """How to begin and how to step.

    Attributes
    ----------
    begin : weights -> Point
    step : (Point, number of the step) -> Point
    stalled : Point -> whether further steps are pointless
    """

    begin: Callable[[Weights], Point]
    step: Callable[[Point, Int[Array, ""]], Point]
    stalled: Callable[[Point], Bool[Array, ""]]


def _never(point: Point) -> Bool[Array, ""]:
    return jnp.zeros((), bool)


def lbfgs(objective: Objective, settings: Settings) -> Method:
    """Optax's L-BFGS with its zoom line search; `lr` is not used."""
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
        updates, state = transform.update(
            point.gradient,
            state,
            point.weights,
            value=point.value,
            grad=point.gradient,
            value_fn=value,
        )
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


def _first_order(transform: optax.GradientTransformation, objective: Objective) -> Method:
    """Full-batch steps of an Optax transformation."""

    def begin(weights: Weights) -> Point:
        loss, gradient = objective.value_and_gradient(weights)
        return Point(weights, loss, gradient, transform.init(weights))

    def step(point: Point, count: Array) -> Point:
        updates, memory = transform.update(point.gradient, point.memory, point.weights)
        weights = optax.apply_updates(point.weights, updates)
        loss, gradient = objective.value_and_gradient(weights)
        return Point(weights, loss, gradient, memory)

    return Method(begin, step, _never)


def gd(objective: Objective, settings: Settings) -> Method:
    """Full-batch gradient descent, ``Q <- Q - lr * gradient``."""
    return _first_order(optax.sgd(settings.lr), objective)


def adam(objective: Objective, settings: Settings) -> Method:
    """Full-batch Adam."""
    return _first_order(optax.adam(settings.lr), objective)


def sgd(objective: Objective, settings: Settings) -> Method:
    """Gradient descent on mini-batches, a new random one for every step.

    The loss and gradient that the loop sees are those of the mini-batch.
    """
    transform = optax.sgd(settings.lr)

    def begin(weights: Weights) -> Point:
        loss, gradient = objective.estimate(weights, settings.key)
        return Point(weights, loss, gradient, transform.init(weights))

    def step(point: Point, count: Array) -> Point:
        updates, memory = transform.update(point.gradient, point.memory, point.weights)
        weights = optax.apply_updates(point.weights, updates)
        key = jax.random.fold_in(settings.key, count)
        loss, gradient = objective.estimate(weights, key)
        return Point(weights, loss, gradient, memory)

    return Method(begin, step, _never)


@dataclass(frozen=True)
class Optimiser:
    """An entry of the registry: the method and its defaults."""

    build: Callable[[Objective, Settings], Method]
    steps: int
    lr: float | None


#: Optimisers by name. The steps and sizes of gd and adam are the paper's.
OPTIMISERS: dict[str, Optimiser] = {
    "lbfgs": Optimiser(lbfgs, steps=2000, lr=None),
    "gd": Optimiser(gd, steps=5000, lr=0.15),
    "adam": Optimiser(adam, steps=2500, lr=0.01),
    "sgd": Optimiser(sgd, steps=5000, lr=0.15),
}


class Progress(NamedTuple):
    """A run under way: its point, its limit of divergence, steps taken, and why it stopped."""

    point: Point
    ceiling: Float[Array, ""]
    taken: Int[Array, ""]
    outcome: Int[Array, ""]


def launch(method: Method, settings: Settings, weights: Weights) -> Progress:
    """A run at its first point."""
    point = method.begin(weights)
    ceiling = BLOWN_UP * (jnp.abs(point.value) + np.finfo(point.value.dtype).tiny)
    progress = Progress(point, ceiling, jnp.zeros((), int), jnp.zeros((), int))
    return progress._replace(outcome=_outcome(method, settings, progress))


def advance(
    method: Method, settings: Settings, progress: Progress, until: Int[Array, ""]
) -> Progress:
    """Step until the run stops or has taken `until` steps."""

    def running(now: Progress) -> Bool[Array, ""]:
        return (now.outcome == Outcome.RUNNING) & (now.taken < until)

    def step(now: Progress) -> Progress:
        point = method.step(now.point, now.taken)
        new = now._replace(point=point, taken=now.taken + 1)
        new = new._replace(outcome=_outcome(method, settings, new))
        # A diverged run is left at the last point whose loss was of reasonable size.
        keep = new.outcome != Outcome.DIVERGED
        kept = jax.tree.map(lambda a, b: jnp.where(keep, a, b), point, now.point)
        return new._replace(point=kept)

    return jax.lax.while_loop(running, step, progress)


def _outcome(method: Method, settings: Settings, now: Progress) -> Int[Array, ""]:
    slope = jnp.linalg.norm(now.point.gradient)
    sane = jnp.isfinite(now.point.value) & jnp.isfinite(slope) & (now.point.value <= now.ceiling)
    outcome = jnp.where(now.taken >= settings.steps, Outcome.STEPS, Outcome.RUNNING)
    outcome = jnp.where(method.stalled(now.point), Outcome.STALLED, outcome)
    outcome = jnp.where(slope <= settings.tolerance, Outcome.CONVERGED, outcome)
    return jnp.where(sane, outcome, Outcome.DIVERGED)
