"""Training runs over many seeds, in batches, with everything a run is judged by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase import memory, reduced, validate
from dotphase.baselines import linear_layer
from dotphase.data import Dataset, check_dtype, count_sentences, draw, draw_tokens, position_vectors
from dotphase.errors import Interrupted, InvalidInput
from dotphase.generalisation import Rule, attention_error, linear_error, quadrature
from dotphase.model import Model
from dotphase.reduced import Reduced, Weights
from dotphase.training.optimisers import (
    OPTIMISERS,
    Method,
    Objective,
    Outcome,
    Progress,
    Settings,
    advance,
    launch,
)
from dotphase.training.starts import Start, begin, resolve

#: Gradient norm over sqrt(d) at which training stops, by precision.
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
#: Sentences of a mini-batch.
MINIBATCH = 128
#: Held-out sentences, and how many of them are in memory at a time.
HELD_OUT, BLOCK = 1024, 256
#: Steps between two looks at the clock, the progress bar and the keyboard.
STRIDE = 250
#: Arrays of the size of the tokens that exist at once while a data set is made.
COPIES = 4
#: Share of the free memory of a GPU that a batch may take.
SHARE = 0.5

#: An alignment this many times what chance gives, 1/sqrt(d), counts as learned.
CHANCE = 4.0

#: Attributes of runs that are too long to print.
UNSHOWN = ("weights", "history")

#: Quantities averaged over runs.
QUANTITIES = (
    "train_loss",
    "test_error",
    "test_error_sampled",
    "m",
    "theta",
    "q",
    "linear_test_error",
    "gradient_norm",
)


@dataclass(frozen=True)
class Run:
    """One trained student.

    Attributes
    ----------
    seed : number of the run; the data and the start follow from it
    train_loss : loss at the end, per dimension
    test_error : exact, from the measured overlaps through the Gaussian fields
    test_error_sampled, test_error_sampled_stderr : from held-out sentences
    m, theta, q : ``|Q^T p_1|/sqrt d``, ``sigma_1^2 |Q^T Q*|/d``, ``sigma_1^2 |Q^T Q|/d``
    linear_test_error : exact test error of the linear layer fitted to the same data
    gradient_norm : norm of the gradient of the training loss
    semantic_alignment : ``|Q^T Q*|/(|Q| |Q*|)``, in [0, 1]
    converged, reason : whether it is below the tolerance, and why the run stopped
    outcome : the reason in one word
    iterations, seconds : steps taken; time, shared equally among the runs of a batch
    weights : the trained Q
    """

    seed: int
    train_loss: float
    test_error: float
    test_error_sampled: float
    test_error_sampled_stderr: float
    m: float
    theta: float
    q: float
    linear_test_error: float
    gradient_norm: float
    semantic_alignment: float
    converged: bool
    reason: str
    outcome: str
    iterations: int
    seconds: float
    weights: Float[np.ndarray, "d r"] = field(repr=False)

    @property
    def diverged(self) -> bool:
        """Whether the optimiser ran away; the numbers are then those before it did."""
        return self.outcome == "diverged"

    @property
    def mechanism(self) -> str:
        """What the student has learned: ``semantic``, ``positional``, ``mixed`` or ``uninformed``.

        Judged by `semantic_alignment` and `positional_alignment`; chance gives each a value
        of about ``1/sqrt d``.
        """
        aligned = {"semantic": self.semantic_alignment, "positional": self.positional_alignment}
        if min(aligned.values()) > 0.5:
            return "mixed"
        best = max(aligned, key=lambda name: aligned[name])
        return best if aligned[best] > CHANCE / self.weights.shape[0] ** 0.5 else "uninformed"

    @property
    def positional_alignment(self) -> float:
        """``m/sqrt(m^2 + q)``, in [0, 1]."""
        size = (self.m**2 + self.q) ** 0.5
        return self.m / size if size > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The run as plain numbers and strings, without its weights."""
        shown = {name: value for name, value in vars(self).items() if name not in UNSHOWN}
        return {**shown, "mechanism": self.mechanism}


@dataclass(frozen=True)
class Training:
    """Runs that differ in their seed only, with means and standard errors."""

    model: Model = field(repr=False)
    alpha: float
    d: int
    n: int
    start: str
    optimizer: str
    runs: tuple[Run, ...]
    seconds: float

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)

    @property
    def mean(self) -> dict[str, float | None]:
        """Means over the runs that did not diverge; None if there are none."""
        return {name: mean_of(self.runs, name) for name in QUANTITIES}

    @property
    def stderr(self) -> dict[str, float | None]:
        """Standard errors of the means; None for fewer than two runs."""
        return {name: stderr_of(self.runs, name) for name in QUANTITIES}

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        return {
            "d": self.d,
            "n": self.n,
            "alpha": self.alpha,
            "start": self.start,
            "optimizer": self.optimizer,
            "mean": self.mean,
            "stderr": self.stderr,
            "converged": self.converged,
            "runs": [run.to_dict() for run in self.runs],
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        head = f"{self.start} start at alpha = {self.alpha:g}, d = {self.d}, {self.optimizer}"
        lines = [f"{head}, {len(self.runs)} runs"]
        mean, stderr = self.mean, self.stderr
        for name in QUANTITIES:
            if mean[name] is None:
                continue
            spread = "" if stderr[name] is None else f" ± {stderr[name]:.2g}"
            lines.append(f"  {name:<20} {mean[name]:.6g}{spread}")
        reasons = [run.reason for run in self.runs]
        for reason in dict.fromkeys(reasons):
            lines.append(f"  {reasons.count(reason)} of {len(reasons)}: {reason}")
        return "\n".join(lines)


def mean_of(runs: Sequence[Run], name: str) -> float | None:
    """Mean of a quantity over the runs that did not diverge; None if there are none."""
    values = _values(runs, name)
    return float(values.mean()) if values.size else None


def stderr_of(runs: Sequence[Run], name: str) -> float | None:
    """Standard error of `mean_of`; None for fewer than two runs."""
    values = _values(runs, name)
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None


def _values(runs: Sequence[Run], name: str) -> np.ndarray:
    return np.asarray([getattr(run, name) for run in runs if not run.diverged])


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


def train(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 8,
    start: str | Start = "semantic",
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
    start : {"semantic", "positional", "random"} or callable
        Where to begin; a callable takes (key, teacher_weights, positions) and returns Q.
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
            model, alpha, d, seeds, start, optimizer, steps, lr, tolerance, minibatch, held_out,
            seed, dtype, batch, on_step, on_run,
        )  # fmt: skip


def _train(
    model: Model,
    alpha: float,
    d: int,
    seeds: int,
    start: str | Start,
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
        model, d, n, start, optimizer, steps, lr, tolerance, minibatch, held_out, seed, dtype
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
        start=resolve(model, start),
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
        n = some.used.shape[0]
        chosen = jax.random.randint(key, (minibatch,), 0, n)
        part = Reduced(
            some.z[chosen],
            jax.tree.map(lambda leaf: leaf[..., chosen], some.form),
            some.used[chosen] * (n / minibatch),
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
    rho = model.rho[0]
    tiny = np.finfo(weights.dtype).tiny
    return Measured(
        train_loss=value / d,
        test_error=attention_error(model, weights, ready.teacher_weights, ready.positions, rule),
        test_error_sampled=held_out[0],
        test_error_sampled_stderr=held_out[1],
        m=jnp.linalg.norm(weights.T @ ready.positions[0]) / np.sqrt(d),
        theta=rho * jnp.linalg.norm(weights.T @ ready.teacher_weights) / d,
        q=rho * jnp.linalg.norm(weights.T @ weights) / d,
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
