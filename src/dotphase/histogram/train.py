"""Training of several networks together: compiled epochs with batches in random order.

On a GPU all runs are one `vmap`. On a CPU, where a run occupies one core, each core trains one run
at a time. The batches of an epoch follow from the key of the run and the number of the epoch alone,
so a resumed run is equal to an uninterrupted one.
"""

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
from dotphase.histogram.settings import BATCH_SIZE
from dotphase.histogram.task import Split
from dotphase.numerics.outcome import Outcome
from dotphase.runtime import interrupt
from dotphase.runtime.progress import Progress, ProgressEvent, reporter

#: Sequences per batch of an evaluation.
EVALUATION_BATCH = 1000
#: Held while an epoch is dispatched, so that two threads never compile the same function.
_DISPATCH = threading.Lock()
#: Step size of both optimizers.
STEP_SIZE = 1e-3

OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "adam": lambda: optax.adam(STEP_SIZE, b1=0.9, b2=0.98, eps=1e-9),
    "sgd": lambda: optax.sgd(STEP_SIZE),
}


class State(NamedTuple):
    """Networks in training with their optimizer state; a leading axis over runs."""

    network: Network
    optimizer_state: Any


class RunInputs(NamedTuple):
    """Constraint and key of a run."""

    constraint: Constraint
    key: Array


class Measured(NamedTuple):
    """Results of one epoch: mean loss of its batches, held-out loss and held-out accuracy."""

    train_loss: Array
    held_out_loss: Array
    accuracy: Array


@dataclass(frozen=True)
class Plan:
    """Optimizer and length of a training."""

    optimizer: str = "adam"  #: ``adam`` (1e-3, .9, .98) or ``sgd`` (1e-3)
    epochs: int = 200  #: largest number of epochs
    target: float | None = None  #: held-out accuracy at which a run stops; None for all epochs
    batch_size: int = BATCH_SIZE  #: sequences in a batch; the last batch of a pass may be smaller
    passes: int = 1  #: passes through the training data in an epoch

    def __post_init__(self) -> None:
        validation.choice("optimizer", self.optimizer, OPTIMIZERS)
        for name in ("epochs", "batch_size", "passes"):
            validation.integer(name, getattr(self, name), at_least=1)

    @property
    def compiled_for(self) -> tuple[str, int, int]:
        """Static arguments of a compiled epoch: optimizer, batch size and passes."""
        return self.optimizer, self.batch_size, self.passes


@dataclass(frozen=True, eq=False)
class Trained:
    """Trained networks and their learning curves; a leading axis over runs.

    Attributes
    ----------
    networks : final parameters, with forbidden ones at zero
    train_loss, held_out_loss, accuracy : per run and epoch; NaN after a run stopped
    epochs : number of epochs of each run
    outcome : an `Outcome` for each run; converged if it reached the target
    seconds_per_epoch : median wall time of an epoch of all runs, without the first epoch, which
        compiles, unless it is the only one
    """

    networks: Network = field(repr=False)
    train_loss: Float[np.ndarray, "runs epochs"] = field(repr=False)
    held_out_loss: Float[np.ndarray, "runs epochs"] = field(repr=False)
    accuracy: Float[np.ndarray, "runs epochs"] = field(repr=False)
    epochs: np.ndarray
    outcome: np.ndarray = field(repr=False)
    seconds_per_epoch: float

    @property
    def final_accuracy(self) -> Float[np.ndarray, " runs"]:
        """Held-out accuracy of each run after its last epoch."""
        return self.accuracy[np.arange(len(self.epochs)), self.epochs - 1]


@in_single_precision
def train(
    initial: Network,
    constraints: Constraint,
    keys: Array,
    split: Split,
    plan: Plan,
    *,
    checkpoint: Checkpoint | None = None,
    stage: str = "training",
    progress: Progress = None,
) -> Trained:
    """Train networks; initial networks, constraints and keys have a leading axis over runs.

    The checkpoint receives the state after every epoch, and training resumes from it. The events
    after each epoch have the rows train loss, held-out loss and accuracy of all runs. `Interrupted`
    carries the finished epochs; a loss that is not finite is a `FloatingPointError`.
    """
    report = reporter(progress)
    networks = constrain_all(initial, constraints)
    state = State(networks, _init_optimizers(networks, plan.optimizer))
    inputs = RunInputs(constraints, keys)
    curves = np.empty((0, 3, len(keys)), np.float32)
    stored = checkpoint.load(state) if checkpoint is not None else None
    if stored is not None:
        state, curves = stored
    advance = _advance_vmapped if jax.devices()[0].platform != "cpu" else _advance_in_threads
    data = Split(*map(jnp.asarray, split))
    times: list[float] = []
    try:
        while len(curves) < plan.epochs and (active := _active_runs(curves, plan.target)).any():
            interrupt.check()
            started = time.perf_counter()
            state, row = advance(state, inputs, active, data, len(curves), plan)
            _refuse_nonfinite(row[:, active], len(curves))
            curves = np.concatenate([curves, row[None]])
            if checkpoint is not None:
                checkpoint.save(state, curves)
            times.append(time.perf_counter() - started)
            report(ProgressEvent(stage, len(curves), plan.epochs, row))
    except KeyboardInterrupt:
        if not len(curves):
            raise
        raise Interrupted(_result(state, curves, times, plan, Outcome.RUNNING)) from None
    return _result(state, curves, times, plan, Outcome.STEPS)


@partial(jax.jit, static_argnums=1)
def _init_optimizers(networks: Network, optimizer: str) -> Any:
    """Optimizer state of each network before the first step."""
    return jax.vmap(OPTIMIZERS[optimizer]().init)(networks)


def _active_runs(curves: np.ndarray, target: float | None) -> np.ndarray:
    """Mask of the runs that have not reached the target."""
    if target is None or not len(curves):
        return np.ones(curves.shape[-1], bool)
    # The accuracy of a stopped run is NaN in later rows, and comparisons with NaN are False.
    return ~np.any(curves[:, 2] >= target, axis=0)


def _refuse_nonfinite(row: np.ndarray, epoch: int) -> None:
    if not np.isfinite(row).all():
        raise FloatingPointError(f"the loss is not finite in epoch {epoch + 1}: training diverged")


def _result(
    state: State, curves: np.ndarray, times: list[float], plan: Plan, unfinished: Outcome
) -> Trained:
    """Assemble the result; `unfinished` is the outcome of runs that did not reach the target."""
    train_loss, held_out_loss, accuracy = np.moveaxis(curves, 0, -1)
    return Trained(
        networks=jax.tree.map(np.asarray, state.network),
        train_loss=train_loss,
        held_out_loss=held_out_loss,
        accuracy=accuracy,
        epochs=np.isfinite(accuracy).sum(axis=1),
        outcome=np.where(_active_runs(curves, plan.target), unfinished, Outcome.CONVERGED),
        seconds_per_epoch=float(np.median(times[1:] or times)) if times else float("nan"),
    )


def _advance_vmapped(
    state: State, inputs: RunInputs, active: np.ndarray, data: Split, epoch: int, plan: Plan
) -> tuple[State, np.ndarray]:
    """Train all runs for an epoch in one vmapped call; return the state and the curves' row."""
    new, measured = _epochs(state, inputs, data, epoch, plan.compiled_for)
    if not active.all():

        def keep_stopped(old: Array, new: Array) -> Array:
            return jnp.where(active.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        new = jax.tree.map(keep_stopped, state, new)
    row = np.stack([np.asarray(part, np.float32) for part in measured])
    return new, np.where(active, row, np.nan)


def _advance_in_threads(
    state: State, inputs: RunInputs, active: np.ndarray, data: Split, epoch: int, plan: Plan
) -> tuple[State, np.ndarray]:
    """Train each run for an epoch in a thread of its own; return the state and the curves' row."""

    @in_single_precision  # each thread has its own settings of JAX
    def train_run(run: int) -> tuple[State, Measured]:
        run_state, run_inputs = jax.tree.map(lambda leaf: leaf[run], (state, inputs))
        with _DISPATCH:
            result = _epoch(run_state, run_inputs, data, epoch, plan.compiled_for)
        return jax.tree.map(np.asarray, result)

    runs = np.flatnonzero(active).tolist()
    new = jax.tree.map(np.array, state)
    row = np.full((3, len(active)), np.nan, np.float32)
    # JAX executes the calls of one thread in order, those of several threads in parallel.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for run, (run_state, measured) in zip(runs, pool.map(train_run, runs), strict=True):
            for leaf, part in zip(jax.tree.leaves(new), jax.tree.leaves(run_state), strict=True):
                leaf[run] = part
            row[:, run] = measured
    return new, row


def _train_epoch(
    state: State,
    inputs: RunInputs,
    data: Split,
    epoch: Array | int,
    compiled_for: tuple[str, int, int],
) -> tuple[State, Measured]:
    """Train one run for an epoch and evaluate it; for `compiled_for` see `Plan`."""
    optimizer, batch_size, passes = compiled_for
    method = OPTIMIZERS[optimizer]()
    n = data.train.shape[0]
    keys = jax.random.split(jax.random.fold_in(inputs.key, epoch), passes)
    indices, weights = jax.vmap(lambda key: _batches(jax.random.permutation(key, n), batch_size))(
        keys
    )

    def loss(network: Network, batch: Array, weight: Array) -> Array:
        constrained = constrain(network, inputs.constraint)
        losses, _ = _token_losses(constrained, data.train[batch], data.train_counts[batch])
        return (losses.mean(axis=-1) * weight).sum() / weight.sum()

    def step(state: State, batch: tuple[Array, Array]) -> tuple[State, Array]:
        value, gradient = jax.value_and_grad(loss)(state.network, *batch)
        update, optimizer_state = method.update(gradient, state.optimizer_state, state.network)
        return State(optax.apply_updates(state.network, update), optimizer_state), value

    batches = (indices.reshape(-1, indices.shape[-1]), weights.reshape(-1, weights.shape[-1]))
    state, losses = jax.lax.scan(step, state, batches)
    constrained = constrain(state.network, inputs.constraint)
    return state, Measured(
        losses.mean(), *evaluate(constrained, data.held_out, data.held_out_counts)
    )


_epoch = jax.jit(_train_epoch, static_argnums=4)


@partial(jax.jit, static_argnums=4)
def _epochs(
    state: State, inputs: RunInputs, data: Split, epoch: int, compiled_for: tuple[str, int, int]
) -> tuple[State, Measured]:
    train_epoch = partial(_train_epoch, compiled_for=compiled_for)
    return jax.vmap(train_epoch, in_axes=(0, 0, None, None))(state, inputs, data, epoch)


def evaluate(network: Network, sequences: Array, counts: Array) -> tuple[Array, Array]:
    """Return mean loss and accuracy over all tokens, computed in batches."""
    indices, weights = _batches(jnp.arange(sequences.shape[0]), EVALUATION_BATCH)

    def batch_sums(batch: tuple[Array, Array]) -> tuple[Array, Array]:
        rows, weight = batch
        losses, correct = _token_losses(network, sequences[rows], counts[rows])
        return (losses.mean(-1) * weight).sum(), (correct.mean(-1) * weight).sum()

    loss, correct = jax.lax.map(batch_sums, (indices, weights))
    return loss.sum() / sequences.shape[0], correct.sum() / sequences.shape[0]


def _token_losses(network: Network, sequences: Array, counts: Array) -> tuple[Array, Array]:
    """Cross-entropy of each token, and 1 if the most likely count is correct, else 0."""
    logits = apply(network, sequences).logits
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, counts)
    return losses, (logits.argmax(axis=-1) == counts).astype(logits.dtype)


def _batches(order: Array, size: int) -> tuple[Array, Array]:
    """Split `order` into rows of `size`; entries of weight zero fill the last row."""
    n = order.shape[0]
    size = min(size, n)
    rows = -(-n // size)
    padded = jnp.concatenate([order, jnp.zeros(rows * size - n, order.dtype)])
    weights = (np.arange(rows * size) < n).astype(np.float32)
    return padded.reshape(rows, size), jnp.asarray(weights).reshape(rows, size)
