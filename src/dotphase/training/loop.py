"""The loop of an optimization: begin, step, stop; and the parts that optimizers are made of.

An `Optimizer` is built from an `Objective` and a `Schedule` and gives a `Method`: how to begin
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

from dotphase.finite_d.loss import Weights
from dotphase.numerics.outcome import Outcome

#: Projections of all sentences, sentences on the last axis.
Fields = Float[Array, "tokens r n"]

#: A loss this many times the one at the start has diverged.
BLOWN_UP = 1e3


class Objective(NamedTuple):
    """What an optimizer may ask of the training loss.

    Attributes
    ----------
    value_and_gradient : of the full loss, at given weights
    estimate : the same from the sentences of a random mini-batch, scaled to all of them
    project : weights Q to their projections X, on which the loss depends; linear, and half the
        cost of a gradient
    loss : of weights and their projections, at next to no cost
    collect : the slope in X to its part of the gradient in Q; the other half of the cost
    """

    value_and_gradient: Callable[[Weights], tuple[Float[Array, ""], Weights]]
    estimate: Callable[[Weights, Array], tuple[Float[Array, ""], Weights]]
    project: Callable[[Weights], Fields]
    loss: Callable[[Weights, Fields], Float[Array, ""]]
    collect: Callable[[Fields], Weights]


class Schedule(NamedTuple):
    """Numbers of an optimization, traced: changing them compiles nothing again.

    Attributes
    ----------
    lr : size of a step, or of each
    steps : most steps
    tolerance : norm of the gradient at which to stop
    key : randomness of mini-batches
    momentum : share of the last step that is added, by the optimizer of that name
    """

    lr: Float[Array, "*steps"]
    steps: Int[Array, ""]
    tolerance: Float[Array, ""]
    key: Array
    momentum: Float[Array, ""]


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


@dataclass(frozen=True)
class Optimizer:
    """An optimizer and its defaults.

    Attributes
    ----------
    build : ``(Objective, Schedule) -> Method``
    steps : most steps
    lr : size of a step; None for an optimizer that chooses its own
    end_steps, end_lr : the same where many students are trained and only the end is looked at, so
        that steps may be larger than those of a path worth following; as above if not given
    """

    build: Callable[[Objective, Schedule], Method]
    steps: int
    lr: float | None
    end_steps: int | None = None
    end_lr: float | None = None


def first_order(
    transform_of: Callable[[Any], optax.GradientTransformation], minibatch: bool = False
) -> Callable[[Objective, Schedule], Method]:
    """What builds the steps of an Optax transformation, given as a function of the step size (or of
    a function from the number of a step to its size).

    With `minibatch` every step has a new random mini-batch, and the loss and gradient that the
    loop sees are those of the mini-batch.
    """

    def build(objective: Objective, schedule: Schedule) -> Method:
        sizes = schedule.lr
        transform = transform_of(sizes if sizes.ndim == 0 else lambda count: sizes[count])

        def evaluate(weights: Weights, key: Array) -> tuple[Array, Weights]:
            if minibatch:
                return objective.estimate(weights, key)
            return objective.value_and_gradient(weights)

        def begin(weights: Weights) -> Point:
            return Point(weights, *evaluate(weights, schedule.key), transform.init(weights))

        def step(point: Point, count: Array) -> Point:
            updates, memory = transform.update(point.gradient, point.memory, point.weights)
            weights = optax.apply_updates(point.weights, updates)
            key = jax.random.fold_in(schedule.key, count)
            return Point(weights, *evaluate(weights, key), memory)

        return Method(begin, step, lambda point: jnp.zeros((), bool))

    return build


class Progress(NamedTuple):
    """A run under way: its point, its limit of divergence, steps taken, and why it stopped."""

    point: Point
    ceiling: Float[Array, ""]
    taken: Int[Array, ""]
    outcome: Int[Array, ""]


def launch(method: Method, schedule: Schedule, weights: Weights) -> Progress:
    """A run at its first point."""
    point = method.begin(weights)
    ceiling = BLOWN_UP * (jnp.abs(point.value) + np.finfo(point.value.dtype).tiny)
    progress = Progress(point, ceiling, jnp.zeros((), int), jnp.zeros((), int))
    return progress._replace(outcome=_outcome(method, schedule, progress))


def advance(
    method: Method, schedule: Schedule, progress: Progress, until: Int[Array, ""]
) -> Progress:
    """Step until the run stops or has taken `until` steps."""

    def running(now: Progress) -> Bool[Array, ""]:
        return (now.outcome == Outcome.RUNNING) & (now.taken < until)

    def step(now: Progress) -> Progress:
        point = method.step(now.point, now.taken)
        new = now._replace(point=point, taken=now.taken + 1)
        new = new._replace(outcome=_outcome(method, schedule, new))
        # A diverged run is left at the last point whose loss was of reasonable size.
        keep = new.outcome != Outcome.DIVERGED
        kept = jax.tree.map(lambda a, b: jnp.where(keep, a, b), point, now.point)
        return new._replace(point=kept)

    return jax.lax.while_loop(running, step, progress)


def _outcome(method: Method, schedule: Schedule, now: Progress) -> Int[Array, ""]:
    slope = jnp.linalg.norm(now.point.gradient)
    sane = jnp.isfinite(now.point.value) & jnp.isfinite(slope) & (now.point.value <= now.ceiling)
    outcome = jnp.where(now.taken >= schedule.steps, Outcome.STEPS, Outcome.RUNNING)
    outcome = jnp.where(method.stalled(now.point), Outcome.STALLED, outcome)
    outcome = jnp.where(slope <= schedule.tolerance, Outcome.CONVERGED, outcome)
    begun = now.taken == 0
    return jnp.where(sane, outcome, jnp.where(begun, Outcome.NOT_FINITE, Outcome.DIVERGED))
