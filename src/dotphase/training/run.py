"""Training runs over many seeds, in batches, with everything a run is judged by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dotphase._numerics import validate
from dotphase._numerics.outcome import Outcome
from dotphase.errors import Interrupted, InvalidInput
from dotphase.finite import memory
from dotphase.finite.data import check_dtype, count_sentences, position_vectors
from dotphase.finite.starts import Start, resolve
from dotphase.finite.test_error import quadrature
from dotphase.model import Model
from dotphase.training.batch import (
    BLOCK,
    HELD_OUT,
    measure_runs,
    optimise,
    prepare_runs,
    run_keys,
)
from dotphase.training.optimisers import OPTIMISERS
from dotphase.training.result import Run, Training

#: Gradient norm over sqrt(d) at which training stops, by precision.
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
#: Sentences of a mini-batch.
MINIBATCH = 128
#: Arrays of the size of the tokens that exist at once while a data set is made.
COPIES = 4
#: Share of the free memory of a GPU that a batch may take.
SHARE = 0.5


def train(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 8,
    start: str | Start = "semantic",
    scale: float | None = None,
    optimizer: str = "lbfgs",
    steps: int | None = None,
    lr: float | None = None,
    tolerance: float | None = None,
    minibatch: int = MINIBATCH,
    held_out: int = HELD_OUT,
    seed: int = 0,
    dtype: str = "float64",
    batch: int | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> Training:
    """Train students on data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    seeds : int
        Number of runs, each with a data set of its own.
    start : {"semantic", "positional", "mixed", "random"} or callable
        Where to begin; a callable takes (key, teacher_weights, positions) and returns Q.
    scale : float, optional
        Standard deviation of the entries of a random start, .1 if not given; for the other
        starts that of columns nothing else is said of.
    optimizer : {"lbfgs", "gd", "adam", "sgd"}
        See `dotphase.training.optimisers`, also for what a step is.
    steps, lr : int, float, optional
        Most steps and size of a step; each optimiser has its own defaults.
    tolerance : float, optional
        Norm of the gradient over sqrt(d) at which a run has converged.
    minibatch : int
        Sentences in a mini-batch of sgd.
    held_out : int
        Fresh sentences for `test_error_sampled`, rounded up to whole blocks.
    seed : int
        Seed of everything random; run k is the same whatever `seeds` and `batch` are.
    dtype : {"float64", "float32"}
        Precision of data and training.
    batch : int, optional
        Runs trained at once; chosen to fit into memory if not given.
    on_step, on_run : callable, optional
        Called with (steps taken, most steps) while a batch is trained, and with each `Run`.

    Returns
    -------
    Training
        Means, standard errors, and the runs; each says whether it converged and why it
        stopped.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` that carries the runs finished so far.
    """
    # Optax mixes precisions in its own state, so single precision is the setting of all of it.
    with jax.enable_x64(check_dtype(dtype) == np.float64):
        return _train(
            model, alpha, d, seeds, start, scale, optimizer, steps, lr, tolerance, minibatch,
            held_out, seed, dtype, batch, on_step, on_run,
        )  # fmt: skip


def _train(
    model: Model,
    alpha: float,
    d: int,
    seeds: int,
    start: str | Start,
    scale: float | None,
    optimizer: str,
    steps: int | None,
    lr: float | None,
    tolerance: float | None,
    minibatch: int,
    held_out: int,
    seed: int,
    dtype: str,
    batch: int | None,
    on_step: Callable[[int, int], None] | None,
    on_run: Callable[[Run], None] | None,
) -> Training:
    began = time.perf_counter()
    n = count_sentences(model, alpha, d)
    job = _check(
        model, d, n, start, scale, optimizer, steps, lr, tolerance, minibatch, held_out, seed, dtype
    )
    seeds = validate.whole("seeds", seeds, at_least=1)
    batch = choose_batch(model, d, n, job.dtype, seeds, batch)
    runs: list[Run] = []

    def result() -> Training:
        name = start if isinstance(start, str) else "custom"
        seconds = time.perf_counter() - began
        return Training(model, float(alpha), d, n, name, optimizer, tuple(runs), seconds)

    try:
        for first in range(0, seeds, batch):
            # The last batch is filled up to the same size, so that nothing is compiled again.
            numbers = np.arange(first, first + batch)
            with memory.explained(batch):
                for run in _train_batch(job, numbers, on_step):
                    if run.seed < seeds:
                        runs.append(run)
                        if on_run is not None:
                            on_run(run)
    except KeyboardInterrupt:
        if not runs:
            raise
        raise Interrupted(result()) from None
    return result()


@dataclass(frozen=True)
class _Job:
    """Checked arguments of `train`."""

    model: Model
    d: int
    n: int
    start: Start
    optimizer: str
    steps: int
    lr: float
    tolerance: float
    minibatch: int
    blocks: int
    seed: int
    dtype: np.dtype


def _check(
    model: Model,
    d: int,
    n: int,
    start: str | Start,
    scale: float | None,
    optimizer: str,
    steps: int | None,
    lr: float | None,
    tolerance: float | None,
    minibatch: int,
    held_out: int,
    seed: int,
    dtype: str,
) -> _Job:
    chosen = OPTIMISERS[validate.choice("optimizer", optimizer, OPTIMISERS)]
    kind = check_dtype(dtype)
    if lr is not None and chosen.lr is None:
        raise InvalidInput("lr", lr, f"must not be given: {optimizer} chooses its own steps")
    if tolerance is None:
        tolerance = TOLERANCE[kind.name]
    return _Job(
        model=cast(model, kind),
        d=d,
        n=n,
        start=resolve(model, start, scale),
        optimizer=optimizer,
        steps=validate.whole("steps", chosen.steps if steps is None else steps, at_least=1),
        lr=validate.number("lr", (chosen.lr or 1.0) if lr is None else lr, above=0),
        tolerance=validate.number("tolerance", tolerance, above=0) * float(np.sqrt(d)),
        minibatch=min(validate.whole("minibatch", minibatch, at_least=1), n),
        blocks=-(-validate.whole("held_out", held_out, at_least=2) // BLOCK),
        seed=validate.whole("seed", seed, at_least=0),
        dtype=kind,
    )


def cast(model: Model, dtype: np.dtype) -> Model:
    """The model with its numbers in the given precision, so that arrays keep theirs."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf, dtype) if eqx.is_inexact_array_like(leaf) else leaf, model
    )


def choose_batch(
    model: Model, d: int, n: int, dtype: np.dtype, seeds: int, batch: int | None
) -> int:
    """How many runs to train at once; a batch that the user asks for must fit."""
    each = COPIES * max(n, BLOCK) * model.length * d * dtype.itemsize
    room = memory.available()
    if batch is not None:
        batch = min(validate.whole("batch", batch, at_least=1), seeds)
        memory.check_batch(batch, each, room, d)
        return batch
    memory.check_batch(1, each, room, d)
    if jax.devices()[0].platform == "cpu":
        # The runs of a batch compete for the same memory bus, and all wait for the slowest.
        return 1
    return int(np.clip(SHARE * room // each, 1, seeds))


def _train_batch(
    job: _Job, numbers: np.ndarray, on_step: Callable[[int, int], None] | None
) -> Iterator[Run]:
    began = time.perf_counter()
    keys = run_keys(jax.random.key(job.seed), jnp.asarray(numbers))
    positions = jnp.asarray(position_vectors(job.model, job.d), job.dtype)
    ready = prepare_runs(job.model, job.start, keys, job.n, positions)
    progress = optimise(
        job.model, ready, job.optimizer, job.steps, job.lr, job.tolerance, job.minibatch, keys,
        on_step,
    )  # fmt: skip
    rule = quadrature(job.model)
    measured = measure_runs(job.model, ready, progress.point.weights, rule, keys, job.blocks)
    measured = jax.tree.map(np.asarray, measured)
    seconds = (time.perf_counter() - began) / len(numbers)
    weights = np.asarray(progress.point.weights)
    for lane, number in enumerate(numbers):
        numbers_of_run = {name: float(value[lane]) for name, value in measured._asdict().items()}
        outcome = Outcome(int(progress.outcome[lane]))
        if outcome == Outcome.STEPS and numbers_of_run["gradient_norm"] <= job.tolerance:
            outcome = Outcome.CONVERGED
        yield Run(
            seed=int(number),
            converged=outcome == Outcome.CONVERGED,
            reason=outcome.message,
            outcome=outcome.name.lower(),
            iterations=int(progress.taken[lane]),
            seconds=seconds,
            weights=weights[lane],
            **numbers_of_run,
        )
