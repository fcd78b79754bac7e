"""Optimization loop: initialize, step, stop; and the interface of optimizers.

An `Optimizer` builds a `Method` from an `Objective` and a `Schedule`; the method initializes a
`Point` at given weights and takes one step. All of this is for one run, and `jax.vmap` trains many
runs. The loop (`advance`) stops a run when the gradient meets the tolerance, when all steps are
taken, when the floating-point precision allows no more progress, or when the run diverges.

The loss is ``sum_mu |y - f|^2/(2d) + (ridge/2) |Q|^2``, divided by neither n nor d, and a step of
gradient descent is ``Q <- Q - lr * gradient`` of this loss. Its curvature is of order 0.01 for the
paper's model, so that the paper's 5000 steps of size 0.15 shrink errors by about e^{-10}. With a
loss divided by n or d the weights would hardly move.
"""

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

#: A run has diverged once its loss exceeds this multiple of the initial loss.
DIVERGENCE_FACTOR = 1e3


class Objective(NamedTuple):
    """Training loss, as optimizers evaluate it."""

    #: weights -> full loss and its gradient
    value_and_gradient: Callable[[Weights], tuple[Float[Array, ""], Weights]]
    #: (weights, key, number of the mini-batch) -> the same from a mini-batch, random and scaled to
    #: all sentences, or the next one of a single pass
    estimate: Callable[[Weights, Array, Array | int], tuple[Float[Array, ""], Weights]]
    #: weights Q -> projections X; linear, half the cost of a gradient
    project: Callable[[Weights], Fields]
    #: (weights, projections) -> loss, at negligible cost
    loss: Callable[[Weights, Fields], Float[Array, ""]]
    #: gradient in X -> its part of the gradient in Q; the other half of the cost
    collect: Callable[[Fields], Weights]


class Schedule(NamedTuple):
    """Traced numbers of an optimization; other values need no recompilation."""

    lr: Float[Array, "*steps"]  #: step size, or one for each step
    steps: Int[Array, ""]  #: maximum number of steps
    tolerance: Float[Array, ""]  #: norm of the gradient at which to stop
    key: Array  #: randomness of mini-batches
    momentum: Float[Array, ""]  #: momentum coefficient of the optimizer of that name


class Point(NamedTuple):
    """Iterate: weights, their loss and gradient, and the state of the method."""

    weights: Weights
    value: Float[Array, ""]
    gradient: Weights
    state: Any


class Method(NamedTuple):
    """Functions of one optimization method."""

    initialize: Callable[[Weights], Point]  #: weights -> Point
    step: Callable[[Point, Int[Array, ""]], Point]  #: (Point, index of the step) -> Point
    stalled: Callable[[Point], Bool[Array, ""]]  #: Point -> True if further steps are pointless


@dataclass(frozen=True)
class Optimizer:
    """Optimizer and its defaults."""

    build: Callable[[Objective, Schedule], Method]  #: ``(Objective, Schedule) -> Method``
    steps: int  #: maximum number of steps
    lr: float | None  #: step size; None for an optimizer that chooses its own
    #: the same for many students of which only the final weights matter, so that steps may be
    #: larger; by default `steps` and `lr`
    endpoint_steps: int | None = None
    endpoint_lr: float | None = None


def first_order(
    transform_of: Callable[[Any], optax.GradientTransformation], minibatch: bool = False
) -> Callable[[Objective, Schedule], Method]:
    """Return the `build` function of an optimizer that takes the steps of an Optax transformation.

    `transform_of` makes the transformation from a step size or from a function of the step's index.
    With `minibatch` every step has a new random mini-batch, and the loop uses the loss and gradient
    of that mini-batch.
    """

    def build(objective: Objective, schedule: Schedule) -> Method:
        sizes = schedule.lr
        transform = transform_of(sizes if sizes.ndim == 0 else lambda count: sizes[count])

        def evaluate(weights: Weights, key: Array, number: Array | int) -> tuple[Array, Weights]:
            if minibatch:
                return objective.estimate(weights, key, number)
            return objective.value_and_gradient(weights)

        def initialize(weights: Weights) -> Point:
            return Point(weights, *evaluate(weights, schedule.key, 0), transform.init(weights))

        def step(point: Point, count: Array) -> Point:
            updates, state = transform.update(point.gradient, point.state, point.weights)
            weights = optax.apply_updates(point.weights, updates)
            key = jax.random.fold_in(schedule.key, count)
            return Point(weights, *evaluate(weights, key, count + 1), state)

        return Method(initialize, step, lambda point: jnp.zeros((), bool))

    return build


class RunState(NamedTuple):
    """State of a run: its point, the largest loss allowed, steps taken, and the outcome."""

    point: Point
    max_loss: Float[Array, ""]
    steps: Int[Array, ""]
    outcome: Int[Array, ""]


def initialize_run(method: Method, schedule: Schedule, weights: Weights) -> RunState:
    """Return a run at its first point."""
    point = method.initialize(weights)
    max_loss = DIVERGENCE_FACTOR * (jnp.abs(point.value) + np.finfo(point.value.dtype).tiny)
    state = RunState(point, max_loss, jnp.zeros((), int), jnp.zeros((), int))
    return state._replace(outcome=_outcome(method, schedule, state))


def advance(method: Method, schedule: Schedule, state: RunState, until: Int[Array, ""]) -> RunState:
    """Step until the run stops or has taken `until` steps."""

    def is_running(state: RunState) -> Bool[Array, ""]:
        return (state.outcome == Outcome.RUNNING) & (state.steps < until)

    def step(state: RunState) -> RunState:
        point = method.step(state.point, state.steps)
        new = state._replace(point=point, steps=state.steps + 1)
        new = new._replace(outcome=_outcome(method, schedule, new))
        # A diverged run stays at its last point of allowed loss.
        accept = new.outcome != Outcome.DIVERGED
        point = jax.tree.map(lambda a, b: jnp.where(accept, a, b), point, state.point)
        return new._replace(point=point)

    return jax.lax.while_loop(is_running, step, state)


def _outcome(method: Method, schedule: Schedule, state: RunState) -> Int[Array, ""]:
    loss, slope = state.point.value, jnp.linalg.norm(state.point.gradient)
    is_valid = jnp.isfinite(loss) & jnp.isfinite(slope) & (loss <= state.max_loss)
    outcome = jnp.where(state.steps >= schedule.steps, Outcome.STEPS, Outcome.RUNNING)
    outcome = jnp.where(method.stalled(state.point), Outcome.STALLED, outcome)
    outcome = jnp.where(slope <= schedule.tolerance, Outcome.CONVERGED, outcome)
    failure = jnp.where(state.steps == 0, Outcome.NOT_FINITE, Outcome.DIVERGED)
    return jnp.where(is_valid, outcome, failure)
