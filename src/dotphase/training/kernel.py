"""Training one student on one data set, and measuring it: what everything that trains is made of.

All functions here are for a single start on a single data set and can be compiled; runs of
`train`, cells of a grid, scales of a map of basins and real tokens are `jax.vmap` over them.
"""

from __future__ import annotations

from collections.abc import Callable
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
from dotphase.finite_d.measurement import Measured, measure
from dotphase.finite_d.preparation import Prepared
from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.training.loop import (
    Method,
    Objective,
    Optimizer,
    Progress,
    Schedule,
    advance,
    launch,
)

T = TypeVar("T")


class Recipe(eqx.Module):
    """How to train: an optimizer with numbers, which are traced.

    Attributes
    ----------
    optimizer : how to step
    minibatch : most sentences of a mini-batch
    lr, steps, tolerance : size of a step or of each, most steps, norm of the gradient at which to
        stop
    momentum : share of the last step that is added, where the optimizer has it
    """

    optimizer: Optimizer = eqx.field(static=True)
    minibatch: int = eqx.field(static=True)
    lr: Float[Array, "*steps"]
    steps: Int[Array, ""]
    tolerance: Float[Array, ""]
    momentum: Float[Array, ""]


class Trained(NamedTuple):
    """A trained student: its weights, why it stopped after how many steps, what it is like."""

    weights: Weights
    outcome: Int[Array, ""]
    iterations: Int[Array, ""]
    measured: Measured

    def numbers(self) -> dict[str, Array]:
        """Everything but the weights, by name."""
        reported = {"outcome": self.outcome, "iterations": self.iterations}
        return {**self.measured._asdict(), **reported}


def train_one(
    model: Model, data: Prepared, recipe: Recipe, key: Array, weights: Weights
) -> Trained:
    """Train from given weights to the end; `key` is the randomness of mini-batches."""
    end = optimize(model, data.reduced, recipe, key, weights, recipe.steps)
    return finish(model, data, recipe, end)


def train_from(
    model: Model, data: Prepared, recipe: Recipe, key: Array, starts: Float[Weights, " starts"]
) -> Trained:
    """`train_one` from several starts on the same data: one pass over the tokens serves all."""
    return jax.vmap(lambda weights: train_one(model, data, recipe, key, weights))(starts)


def begin_at(model: Model, data: Reduced, recipe: Recipe, key: Array, weights: Weights) -> Progress:
    """A run before its first step, to go on with `optimize`."""
    return launch(*_method(model, data, recipe, key), weights)


def optimize(
    model: Model,
    data: Reduced,
    recipe: Recipe,
    key: Array,
    where: Weights | Progress,
    until: Int[Array, ""],
) -> Progress:
    """Begin at some weights, or go on with a run under way, until so many steps are taken."""
    method, schedule = _method(model, data, recipe, key)
    begun = where if isinstance(where, Progress) else launch(method, schedule, where)
    return advance(method, schedule, begun, until)


def finish(model: Model, data: Prepared, recipe: Recipe, end: Progress) -> Trained:
    """Measure a student where its training ended."""
    measured = measure(model, data, end.point.weights)
    outcome = settled(end.outcome, measured.gradient_norm, recipe)
    return Trained(end.point.weights, outcome, end.taken, measured)


def settled(
    outcome: Int[Array, ""], gradient_norm: Float[Array, ""], recipe: Recipe
) -> Int[Array, ""]:
    """Why a run stopped: mini-batches do not see that the full gradient met the tolerance."""
    met = (outcome == Outcome.STEPS) & (gradient_norm <= recipe.tolerance)
    return jnp.where(met, Outcome.CONVERGED, outcome)


def record(
    model: Model,
    data: Prepared,
    recipe: Recipe,
    key: Array,
    weights: Weights,
    note: Callable[[Weights], T],
    records: int,
    every: int,
) -> tuple[Progress, T]:
    """Train, and note something of the weights at the start and after each `every` steps.

    A run that stops before its end stays where it is.
    """
    method, schedule = _method(model, data.reduced, recipe, key)

    def part(now: Progress, number: Int[Array, ""]) -> tuple[Progress, T]:
        now = advance(method, schedule, now, (number + 1) * every)
        return now, note(now.point.weights)

    begun = launch(method, schedule, weights)
    end, later = jax.lax.scan(part, begun, jnp.arange(records))
    first = note(weights)
    return end, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)


def _method(model: Model, data: Reduced, recipe: Recipe, key: Array) -> tuple[Method, Schedule]:
    schedule = Schedule(recipe.lr, recipe.steps, recipe.tolerance, key, recipe.momentum)
    return recipe.optimizer.build(objective(model, data, recipe.minibatch), schedule), schedule


def objective(model: Model, data: Reduced, minibatch: int) -> Objective:
    """The training loss as optimizers see it."""

    def full(weights: Weights) -> tuple[Array, Weights]:
        return value_and_gradient(model, data, weights)

    def estimate(weights: Weights, key: Array) -> tuple[Array, Weights]:
        # No sentence twice; padding, which does not count, only where there are too few.
        n = jnp.sum(data.used > 0)
        lots = jnp.where(data.used > 0, jax.random.uniform(key, data.used.shape), -1.0)
        chosen = jax.lax.top_k(lots, min(minibatch, lots.size))[1]
        part = Reduced(
            data.z[chosen],
            jax.tree.map(lambda leaf: leaf[..., chosen], data.form),
            data.used[chosen] * (n / jnp.minimum(minibatch, n)).astype(data.used.dtype),
        )
        return value_and_gradient(model, part, weights)

    return Objective(
        value_and_gradient=full,
        estimate=estimate,
        project=lambda weights: project(data.z, weights),
        loss=lambda weights, fields: training_loss(model, data, weights, fields),
        collect=lambda force: collect(data.z, force),
    )
