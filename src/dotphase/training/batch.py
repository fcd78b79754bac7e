"""A batch of runs, from drawing the data to measuring the trained students, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics.outcome import Outcome
from dotphase._numerics.quadrature import Rule
from dotphase.finite import loss as reduced
from dotphase.finite.data import Dataset, draw, draw_tokens, weighted_product
from dotphase.finite.linear import linear_layer
from dotphase.finite.loss import Reduced, Weights
from dotphase.finite.starts import Start, begin
from dotphase.finite.test_error import attention_error, linear_error
from dotphase.model import Model
from dotphase.training.optimisers import (
    OPTIMISERS,
    Method,
    Objective,
    Progress,
    Settings,
    advance,
    launch,
)

#: Held-out sentences, and how many of them are in memory at a time.
HELD_OUT, BLOCK = 1024, 256
#: Steps between two looks at the clock, the progress bar and the keyboard.
STRIDE = 250


class Prepared(NamedTuple):
    """What a run needs: its loss, what was drawn, where it starts, and the linear layer."""

    reduced: Reduced
    teacher_weights: Float[Array, "d t"]
    positions: Float[Array, "tokens d"]
    weights: Weights
    linear: Float[Array, "tokens tokens"]


class Measured(NamedTuple):
    """Numbers of a finished run, named as in `Run`."""

    train_loss: Array
    test_error: Array
    test_error_sampled: Array
    test_error_sampled_stderr: Array
    m: Array
    theta: Array
    q: Array
    linear_test_error: Array
    gradient_norm: Array
    semantic_alignment: Array


def over_runs(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap` over the runs of a batch; a batch of one is compiled as a single run, which
    is quicker to compile and to execute."""

    def call(*batched: Any) -> Any:
        if jax.tree.leaves(batched)[0].shape[0] > 1:
            return jax.vmap(function)(*batched)
        alone = function(*jax.tree.map(lambda leaf: leaf[0], batched))
        return jax.tree.map(lambda leaf: leaf[None], alone)

    return call


@eqx.filter_jit
def run_keys(root: Array, numbers: Array) -> Array:
    return jax.vmap(lambda number: jax.random.fold_in(root, number))(numbers)


class _Purpose:
    """What the parts of a run's key are for; `draw` uses the key itself."""

    START, STEPS, TEST = 101, 102, 103


@eqx.filter_jit
def prepare_runs(
    model: Model, start: Start, keys: Array, n: int, positions: Float[Array, "tokens d"]
) -> Prepared:
    def one(key: Array) -> Prepared:
        data = draw(model, n, key, positions)
        return prepare(model, data, start, jax.random.fold_in(key, _Purpose.START))

    return over_runs(one)(keys)


def prepare(model: Model, data: Dataset, start: Start, key: Array) -> Prepared:
    """Reduce a data set and choose the start."""
    weights = begin(model, start, key, data.teacher_weights, data.positions)
    return Prepared(
        reduced.reduce(model, data),
        data.teacher_weights,
        data.positions,
        weights,
        linear_layer(model, data),
    )


def objective(model: Model, some: Reduced, minibatch: int) -> Objective:
    """The training loss as optimisers see it."""

    def full(weights: Weights) -> tuple[Array, Weights]:
        return reduced.value_and_gradient(model, some, weights)

    def estimate(weights: Weights, key: Array) -> tuple[Array, Weights]:
        # Padding comes last and is never chosen.
        n = jnp.sum(some.used > 0)
        chosen = jax.random.randint(key, (minibatch,), 0, n)
        part = Reduced(
            some.z[chosen],
            jax.tree.map(lambda leaf: leaf[..., chosen], some.form),
            some.used[chosen] * (n / minibatch).astype(some.used.dtype),
        )
        return reduced.value_and_gradient(model, part, weights)

    return Objective(full, estimate)


def optimise(
    model: Model,
    ready: Prepared,
    name: str,
    steps: int,
    lr: float,
    tolerance: float,
    minibatch: int,
    keys: Array,
    on_step: Callable[[int, int], None] | None = None,
) -> Progress:
    """Train a batch of prepared runs; the axis of the batch comes first everywhere."""
    dtype = ready.weights.dtype
    numbers = (jnp.asarray(lr, dtype), jnp.asarray(steps), jnp.asarray(tolerance, dtype))
    fixed = model, ready.reduced, name, minibatch, numbers, keys
    progress = _launch(*fixed, ready.weights, jnp.asarray(min(STRIDE, steps)))
    while True:
        taken = int(jnp.max(progress.taken))
        if on_step is not None:
            on_step(taken, steps)
        if not bool(jnp.any(progress.outcome == Outcome.RUNNING)):
            return progress
        progress = _continue(*fixed, progress, jnp.asarray(min(taken + STRIDE, steps)))


def _method(
    model: Model, some: Reduced, name: str, minibatch: int, numbers: Any, key: Array
) -> tuple[Method, Settings]:
    lr, steps, tolerance = numbers
    settings = Settings(lr, steps, tolerance, jax.random.fold_in(key, _Purpose.STEPS))
    return OPTIMISERS[name].build(objective(model, some, minibatch), settings), settings


@eqx.filter_jit
def _launch(
    model: Model,
    some: Reduced,
    name: str,
    minibatch: int,
    numbers: Any,
    keys: Array,
    weights: Weights,
    until: Array,
) -> Progress:
    """Begin and take the first steps: most runs need nothing more to be compiled."""

    def one(some: Reduced, key: Array, weights: Weights) -> Progress:
        method, settings = _method(model, some, name, minibatch, numbers, key)
        return advance(method, settings, launch(method, settings, weights), until)

    return over_runs(one)(some, keys, weights)


@eqx.filter_jit
def _continue(
    model: Model,
    some: Reduced,
    name: str,
    minibatch: int,
    numbers: Any,
    keys: Array,
    progress: Progress,
    until: Array,
) -> Progress:
    def one(some: Reduced, key: Array, progress: Progress) -> Progress:
        return advance(*_method(model, some, name, minibatch, numbers, key), progress, until)

    return over_runs(one)(some, keys, progress)


@eqx.filter_jit
def measure_runs(
    model: Model,
    ready: Prepared,
    weights: Weights,
    rule: Rule,
    keys: Array,
    blocks: int,
) -> Measured:
    def one(ready: Prepared, weights: Weights, key: Array) -> Measured:
        held_out = held_out_error(
            model, ready, weights, jax.random.fold_in(key, _Purpose.TEST), blocks
        )
        return measure(model, ready, weights, rule, held_out)

    return over_runs(one)(ready, weights, keys)


def measure(
    model: Model,
    ready: Prepared,
    weights: Weights,
    rule: Rule,
    held_out: tuple[Array, Array],
) -> Measured:
    """Everything reported of one trained student."""
    d = weights.shape[0]
    value, gradient = reduced.value_and_gradient(model, ready.reduced, weights)
    tiny = np.finfo(weights.dtype).tiny
    return Measured(
        train_loss=value / d,
        test_error=attention_error(model, weights, ready.teacher_weights, ready.positions, rule),
        test_error_sampled=held_out[0],
        test_error_sampled_stderr=held_out[1],
        m=jnp.linalg.norm(weights.T @ ready.positions[0]) / np.sqrt(d),
        theta=jnp.linalg.norm(weighted_product(model, weights, ready.teacher_weights)),
        q=jnp.linalg.norm(weighted_product(model, weights, weights)),
        linear_test_error=linear_error(model, ready.linear, ready.teacher_weights, rule),
        gradient_norm=jnp.linalg.norm(gradient),
        semantic_alignment=jnp.linalg.norm(weights.T @ ready.teacher_weights)
        / (jnp.linalg.norm(weights) * jnp.linalg.norm(ready.teacher_weights) + tiny),
    )


def held_out_error(
    model: Model, ready: Prepared, weights: Weights, key: Array, blocks: int
) -> tuple[Array, Array]:
    """Mean and standard error of ``|y - f|^2/(d L)`` over fresh sentences, block by block."""
    d = weights.shape[0]

    def block(totals: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        tokens = draw_tokens(model, d, BLOCK, key, np.dtype(weights.dtype))
        fresh = reduced.reduce(model, Dataset(tokens, ready.teacher_weights, ready.positions))
        losses = reduced.sentence_losses(model, fresh, reduced.project(fresh.z, weights))
        errors = 2 * losses / model.length
        return (totals[0] + jnp.sum(errors), totals[1] + jnp.sum(errors**2)), None

    zero = jnp.zeros((), weights.dtype)
    (total, squares), _ = jax.lax.scan(block, (zero, zero), jax.random.split(key, blocks))
    count = blocks * BLOCK
    mean = total / count
    return mean, jnp.sqrt(jnp.maximum(squares / count - mean**2, 0) / (count - 1))
