"""Train one student on one data set and measure it.

All functions are for a single start on a single data set and can be compiled. `train`, `grid`,
`basins` and the training on real tokens are `jax.vmap` over them.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dotphase.finite_d.loss import (
    Reduced,
    Weights,
    collect,
    project,
    training_loss,
    value_and_gradient,
)
from dotphase.finite_d.measurement import Measurements, measure
from dotphase.finite_d.preparation import Prepared
from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.training.loop import (
    Method,
    Objective,
    Optimizer,
    Point,
    RunState,
    Schedule,
    advance,
    initialize_run,
)

T = TypeVar("T")


class Recipe(eqx.Module):
    """Optimizer with its traced numbers."""

    optimizer: Optimizer = eqx.field(static=True)  #: the optimizer
    minibatch: int = eqx.field(static=True)  #: maximum number of sentences in a mini-batch
    fresh: bool = eqx.field(static=True)  #: True for a single pass: every sentence is used once
    #: as in `Schedule`
    lr: Float[Array, "*steps"]
    steps: Int[Array, ""]
    tolerance: Float[Array, ""]
    momentum: Float[Array, ""]


class Trained(NamedTuple):
    """Trained student: weights, outcome, number of steps and measurements."""

    weights: Weights
    outcome: Int[Array, ""]
    iterations: Int[Array, ""]
    measured: Measurements

    def numbers(self) -> dict[str, Array]:
        """Return everything except the weights, by name."""
        reported = {"outcome": self.outcome, "iterations": self.iterations}
        return {**self.measured._asdict(), **reported}


def train_one(
    model: Model, data: Prepared, recipe: Recipe, key: Array, weights: Weights
) -> Trained:
    """Train from given weights until the run stops; `key` draws the mini-batches."""
    end = optimize(model, data.reduced, recipe, key, weights, recipe.steps)
    return finish(model, data, recipe, end)


def train_starts(
    model: Model, data: Prepared, recipe: Recipe, key: Array, weights: Float[Weights, " starts"]
) -> Trained:
    """Train from several starts on the same data, with one pass over the tokens for all."""
    return jax.vmap(partial(train_one, model, data, recipe, key))(weights)


def initialize_training(
    model: Model, data: Reduced, recipe: Recipe, key: Array, weights: Weights
) -> RunState:
    """Return a run before its first step, which `optimize` continues."""
    return initialize_run(*_method(model, data, recipe, key), weights)


def optimize(
    model: Model,
    data: Reduced,
    recipe: Recipe,
    key: Array,
    start: Weights | RunState,
    until: Int[Array, ""],
) -> RunState:
    """Start or resume a run and advance it until `until` steps are taken."""
    method, schedule = _method(model, data, recipe, key)
    state = start if isinstance(start, RunState) else initialize_run(method, schedule, start)
    return advance(method, schedule, state, until)


def finish(model: Model, data: Prepared, recipe: Recipe, end: RunState) -> Trained:
    """Measure a student after its training."""
    measured = measure(model, data, end.point.weights)
    outcome = final_outcome(end.outcome, measured.gradient_norm, recipe)
    return Trained(end.point.weights, outcome, end.steps, measured)


def final_outcome(
    outcome: Int[Array, ""], gradient_norm: Float[Array, ""], recipe: Recipe
) -> Int[Array, ""]:
    """Return the outcome by the full gradient, which mini-batches do not evaluate."""
    met = (outcome == Outcome.STEPS) & (gradient_norm <= recipe.tolerance)
    return jnp.where(met, Outcome.CONVERGED, outcome)


def train_recording(
    model: Model,
    data: Prepared,
    recipe: Recipe,
    key: Array,
    weights: Weights,
    observe: Callable[[Weights], T],
    records: int,
    every: int,
) -> tuple[RunState, T]:
    """Train, and observe the weights at the start and after each `every` steps.

    A run that stops early keeps its last weights.
    """
    method, schedule = _method(model, data.reduced, recipe, key)

    def segment(state: RunState, index: Int[Array, ""]) -> tuple[RunState, T]:
        state = advance(method, schedule, state, (index + 1) * every)
        return state, observe(state.point.weights)

    state = initialize_run(method, schedule, weights)
    end, later = jax.lax.scan(segment, state, jnp.arange(records))
    return end, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), observe(weights), later)


def _method(model: Model, data: Reduced, recipe: Recipe, key: Array) -> tuple[Method, Schedule]:
    # A single sentence can have any small gradient: one pass never stops early.
    tolerance = -jnp.ones_like(recipe.tolerance) if recipe.fresh else recipe.tolerance
    schedule = Schedule(recipe.lr, recipe.steps, tolerance, key, recipe.momentum)
    full = objective(model, data, recipe.minibatch)
    if not recipe.fresh:
        return recipe.optimizer.build(full, schedule), schedule
    method = recipe.optimizer.build(
        full._replace(estimate=single_pass(model, data, recipe.minibatch)), schedule
    )

    def initialize(weights: Weights) -> Point:
        # Divergence is judged by the mean loss, as the first sentence may have any small loss.
        mean = full.value_and_gradient(weights)[0] * recipe.minibatch / jnp.sum(data.used)
        return method.initialize(weights)._replace(value=mean)

    return method._replace(initialize=initialize), schedule


def single_pass(
    model: Model, data: Reduced, minibatch: int
) -> Callable[[Weights, Array, Array | int], tuple[Array, Weights]]:
    """Return the loss and gradient of successive mini-batches, each used once.

    Sentences have weight one, and each brings the share 1/d of the penalty, as in `online`.
    """
    penalty = model.ridge * minibatch / data.z.shape[-1]
    shared = eqx.tree_at(lambda parts: parts.ridge, model, penalty)

    def batch(leaf: Array, number: Array | int, axis: int) -> Array:
        return jax.lax.dynamic_slice_in_dim(leaf, number * minibatch, minibatch, axis)

    def estimate(weights: Weights, key: Array, number: Array | int) -> tuple[Array, Weights]:
        form = jax.tree.map(lambda leaf: batch(leaf, number, leaf.ndim - 1), data.form)
        subset = Reduced(batch(data.z, number, 0), form, batch(data.used, number, 0))
        return value_and_gradient(shared, subset, weights)

    return estimate


def objective(model: Model, data: Reduced, minibatch: int) -> Objective:
    """Return the training loss for optimizers."""

    def full(weights: Weights) -> tuple[Array, Weights]:
        return value_and_gradient(model, data, weights)

    def estimate(weights: Weights, key: Array, number: Array | int) -> tuple[Array, Weights]:
        # Draw without repetition; padding comes last and has no weight in the loss.
        n = jnp.sum(data.used > 0)
        priority = jnp.where(data.used > 0, jax.random.uniform(key, data.used.shape), -1.0)
        sentences = jax.lax.top_k(priority, min(minibatch, priority.size))[1]
        subset = Reduced(
            data.z[sentences],
            jax.tree.map(lambda leaf: leaf[..., sentences], data.form),
            data.used[sentences] * (n / jnp.minimum(minibatch, n)).astype(data.used.dtype),
        )
        return value_and_gradient(model, subset, weights)

    return Objective(
        value_and_gradient=full,
        estimate=estimate,
        project=lambda weights: project(data.z, weights),
        loss=lambda weights, fields: training_loss(model, data, weights, fields),
        collect=lambda force: collect(data.z, force),
    )
