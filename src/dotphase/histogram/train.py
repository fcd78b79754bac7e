"""Training of many networks together: epochs compiled whole, batches in random order.

On a GPU all runs are one `vmap`; on a CPU, where one run keeps one core busy, each core takes a
run. The order of the batches of an epoch follows from the run's key and the number of the epoch
alone, so that a run that was stopped goes on as if it had not been.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.errors import Interrupted
from dotphase.histogram.checkpoint import Checkpoint
from dotphase.histogram.network import (
    Constraint,
    Network,
    apply,
    constrain,
    constrain_all,
    in_single_precision,
)
from dotphase.histogram.task import Split, Task
from dotphase.numerics.outcome import Outcome
from dotphase.runtime import interrupt, memory_limit

#: Sequences of a batch, in training and in evaluation.
BATCH, EVALUATED = 32, 1000
#: Held while an epoch is handed to JAX, so that threads do not compile the same thing at once.
_DISPATCH = threading.Lock()
#: Size of a step of either optimizer.
STEP = 1e-3

OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "adam": lambda: optax.adam(STEP, b1=0.9, b2=0.98, eps=1e-9),
    "sgd": lambda: optax.sgd(STEP),
}


class State(NamedTuple):
    """Networks in training, with what the optimizer remembers; a leading axis over runs."""

    network: Network
    memory: Any


class Fixed(NamedTuple):
    """What stays the same for a run."""

    rule: Constraint
    key: Array


class Measured(NamedTuple):
    """One epoch: mean loss of its batches, and loss and accuracy on held-out sequences."""

    train_loss: Array
    held_out_loss: Array
    accuracy: Array


@dataclass(frozen=True)
class Plan:
    """How to train.

    Attributes
    ----------
    optimizer : ``adam`` (1e-3, .9, .98) or ``sgd`` (1e-3)
    epochs : most epochs
    target : held-out accuracy at which a run stops; None to go on to the end
    batch : sequences of a batch; the last of an epoch may be smaller
    passes : passes through the training data that make an epoch
    """

    optimizer: str = "adam"
    epochs: int = 200
    target: float | None = None
    batch: int = BATCH
    passes: int = 1

    def __post_init__(self) -> None:
        validation.choice("optimizer", self.optimizer, OPTIMIZERS)
        validation.integer("epochs", self.epochs, at_least=1)
        validation.integer("batch", self.batch, at_least=1)
        validation.integer("passes", self.passes, at_least=1)
        if self.target is not None:
            validation.number("target", self.target, above=0, at_most=1)

    @property
    def fixed(self) -> tuple[str, int, int]:
        """What an epoch is compiled for: optimizer, batch and passes."""
        return self.optimizer, self.batch, self.passes


@dataclass(frozen=True)
class Trained:
    """Trained networks and their learning curves; a leading axis over runs.

    Attributes
    ----------
    networks : parameters at the end, with forbidden ones at zero
    train_loss, held_out_loss, accuracy : per run and epoch; not a number after a run stopped
    epochs : epochs that each run took
    outcome : an `Outcome` for each run: converged if it reached the target
    seconds_per_epoch : wall-clock time of an epoch of all runs, and of one run's share; without
        the first, which compiles, unless it is the only one
    """

    networks: Network = field(repr=False)
    train_loss: Float[np.ndarray, "runs epochs"]
    held_out_loss: Float[np.ndarray, "runs epochs"]
    accuracy: Float[np.ndarray, "runs epochs"]
    epochs: np.ndarray
    outcome: np.ndarray
    seconds_per_epoch: float

    @property
    def final_accuracy(self) -> Float[np.ndarray, " runs"]:
        """Held-out accuracy at the end of each run."""
        return self.accuracy[np.arange(len(self.epochs)), self.epochs - 1]


@in_single_precision
def train(
    starts: Network,
    rules: Constraint,
    keys: Array,
    split: Split,
    plan: Plan,
    *,
    store: Checkpoint | None = None,
    on_epoch: Callable[[int, Float[np.ndarray, "quantities runs"]], None] | None = None,
) -> Trained:
    """Train networks from their starts.

    Parameters
    ----------
    starts, rules, keys : Network, Constraint, Array
        Where each run begins, what binds it, and its randomness; a leading axis over runs.
    split : Split
        Training and held-out sequences, shared by the runs.
    plan : Plan
        How to train.
    store : Checkpoint, optional
        Keeps the state after every epoch, and gives it back.
    on_epoch : callable, optional
        Called with the number of epochs done and the row (train loss, held-out loss, accuracy)
        of each run.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` that carries what was trained so far.
    FloatingPointError
        A loss that is not finite.
    """
    runs = len(keys)
    starts = constrain_all(starts, rules)
    state = State(starts, _empty_memory(starts, plan.optimizer))
    fixed = Fixed(rules, keys)
    curves = np.empty((0, 3, runs), np.float32)
    found = store.load(state) if store is not None else None
    if found is not None:
        state, curves = found
    advance = _one_vmap if jax.devices()[0].platform != "cpu" else _one_by_one
    data = Split(*map(jnp.asarray, split))
    times: list[float] = []
    try:
        while len(curves) < plan.epochs and (active := _active(curves, runs, plan.target)).any():
            interrupt.check()
            began = time.perf_counter()
            state, row = advance(state, fixed, active, data, len(curves), plan)
            _refuse_nonfinite(row[:, active], len(curves))
            curves = np.concatenate([curves, row[None]])
            if store is not None:
                store.save(state, curves)
            times.append(time.perf_counter() - began)
            if on_epoch is not None:
                on_epoch(len(curves), row)
    except KeyboardInterrupt:
        if not len(curves):
            raise
        raise Interrupted(_result(state, curves, times, plan, Outcome.RUNNING)) from None
    return _result(state, curves, times, plan, Outcome.STEPS)


def check_runs(runs: Any, task: Task, dimension: int, hidden: int) -> int:
    """A number of runs whose networks, starts and the optimizer's memories fit into memory."""
    numbers = dimension * (task.symbols + task.length + 4 * dimension + 2 * hidden)
    return memory_limit.check_storage(
        "runs", validation.integer("runs", runs, at_least=1), 8 * 4 * numbers
    )


@partial(jax.jit, static_argnums=1)
def _empty_memory(starts: Network, optimizer: str) -> Any:
    """What the optimizer remembers before the first step."""
    return jax.vmap(OPTIMIZERS[optimizer]().init)(starts)


def _active(curves: np.ndarray, runs: int, target: float | None) -> np.ndarray:
    """Runs that have not reached the target."""
    if target is None or not len(curves):
        return np.ones(runs, bool)
    # A run that stopped has no number in later rows, and comparisons with those are false.
    return ~np.any(curves[:, 2] >= target, axis=0)


def _refuse_nonfinite(row: np.ndarray, epoch: int) -> None:
    if not np.isfinite(row).all():
        raise FloatingPointError(f"the loss is not finite in epoch {epoch + 1}: training diverged")


def _result(
    state: State, curves: np.ndarray, times: list[float], plan: Plan, otherwise: Outcome
) -> Trained:
    train_loss, held_out_loss, accuracy = np.moveaxis(curves, 0, -1)
    active = _active(curves, curves.shape[-1], plan.target)
    return Trained(
        networks=jax.tree.map(np.asarray, state.network),
        train_loss=train_loss,
        held_out_loss=held_out_loss,
        accuracy=accuracy,
        epochs=np.isfinite(accuracy).sum(axis=1),
        outcome=np.where(active, otherwise, Outcome.CONVERGED),
        seconds_per_epoch=float(np.median(times[1:] or times)) if times else float("nan"),
    )


def _one_vmap(
    state: State, fixed: Fixed, active: np.ndarray, data: Split, epoch: int, plan: Plan
) -> tuple[State, np.ndarray]:
    new, measured = _epochs(state, fixed, data, epoch, plan.fixed)
    if not active.all():
        # Runs that are done wait for the others, untouched.
        def keep(old: Array, later: Array) -> Array:
            return jnp.where(active.reshape(-1, *[1] * (later.ndim - 1)), later, old)

        new = jax.tree.map(keep, state, new)
    row = np.stack([np.asarray(part, np.float32) for part in measured])
    return new, np.where(active, row, np.nan)


def _one_by_one(
    state: State, fixed: Fixed, active: np.ndarray, data: Split, epoch: int, plan: Plan
) -> tuple[State, np.ndarray]:
    @in_single_precision  # settings of JAX belong to a thread
    def one(run: int) -> tuple[State, Measured]:
        mine, bound = jax.tree.map(lambda leaf: leaf[run], (state, fixed))
        with _DISPATCH:
            begun = _epoch(mine, bound, data, epoch, plan.fixed)
        return jax.tree.map(np.asarray, begun)

    runs = np.flatnonzero(active).tolist()
    new = jax.tree.map(np.array, state)
    row = np.full((3, len(active)), np.nan, np.float32)
    # JAX runs what one thread asks for in order, what several ask for side by side.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for run, (mine, measured) in zip(runs, pool.map(one, runs), strict=True):
            for whole, part in zip(jax.tree.leaves(new), jax.tree.leaves(mine), strict=True):
                whole[run] = part
            row[:, run] = measured
    return new, row


def _train_epoch(
    state: State, fixed: Fixed, data: Split, epoch: Array | int, how: tuple[str, int, int]
) -> tuple[State, Measured]:
    """One epoch of one run, and how good it is then; for `how` see `Plan.fixed`."""
    optimizer, batch, passes = how
    method = OPTIMIZERS[optimizer]()
    n = data.train.shape[0]
    keys = jax.random.split(jax.random.fold_in(fixed.key, epoch), passes)
    chosen, weights = jax.vmap(lambda key: _batches(jax.random.permutation(key, n), batch))(keys)

    def loss(network: Network, places: Array, weight: Array) -> Array:
        held = constrain(network, fixed.rule)
        losses, _ = _errors(held, data.train[places], data.train_counts[places])
        return (losses.mean(axis=-1) * weight).sum() / weight.sum()

    def step(state: State, chosen: tuple[Array, Array]) -> tuple[State, Array]:
        value, gradient = jax.value_and_grad(loss)(state.network, *chosen)
        change, memory = method.update(gradient, state.memory, state.network)
        return State(optax.apply_updates(state.network, change), memory), value

    order = (chosen.reshape(-1, chosen.shape[-1]), weights.reshape(-1, weights.shape[-1]))
    state, losses = jax.lax.scan(step, state, order)
    held_out = evaluate(constrain(state.network, fixed.rule), data.held_out, data.held_out_counts)
    return state, Measured(losses.mean(), *held_out)


_epoch = jax.jit(_train_epoch, static_argnums=4)


@partial(jax.jit, static_argnums=4)
def _epochs(
    state: State, fixed: Fixed, data: Split, epoch: int, how: tuple[str, int, int]
) -> tuple[State, Measured]:
    one = partial(_train_epoch, how=how)
    return jax.vmap(one, in_axes=(0, 0, None, None))(state, fixed, data, epoch)


def evaluate(network: Network, sequences: Array, counts: Array) -> tuple[Array, Array]:
    """Mean loss and accuracy over all tokens, some sequences at a time."""
    chosen, weights = _batches(jnp.arange(sequences.shape[0]), EVALUATED)

    def part(places: Array, weight: Array) -> tuple[Array, Array]:
        losses, right = _errors(network, sequences[places], counts[places])
        return (losses.mean(-1) * weight).sum(), (right.mean(-1) * weight).sum()

    loss, right = jax.lax.map(lambda some: part(*some), (chosen, weights))
    return loss.sum() / sequences.shape[0], right.sum() / sequences.shape[0]


def _errors(network: Network, sequences: Array, counts: Array) -> tuple[Array, Array]:
    """Cross-entropy of each token, and whether the most likely count is right."""
    logits = apply(network, sequences).logits
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, counts)
    return losses, (logits.argmax(axis=-1) == counts).astype(logits.dtype)


def _batches(order: Array, size: int) -> tuple[Array, Array]:
    """`order` cut into rows of `size`; the last is filled up with entries of weight zero."""
    n = order.shape[0]
    size = min(size, n)
    rows = -(-n // size)
    filled = jnp.concatenate([order, jnp.zeros(rows * size - n, order.dtype)])
    weights = (np.arange(rows * size) < n).astype(np.float32)
    return filled.reshape(rows, size), jnp.asarray(weights).reshape(rows, size)
