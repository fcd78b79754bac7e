"""Networks without a constraint: released from one, or trained freely from the start.

`release` writes an imposed solution into the unconstrained network, with small noise on the
parameters that the constraint had bound, and continues with plain gradient steps. A solution that
is no minimum of the unconstrained loss moves away. `emergence` trains networks that were never
constrained from random initializations on n sequences, for several n and with the same number of
steps for each, and measures the scores of their attention.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.config.settings import replace_fields
from dotphase.errors import InvalidInput
from dotphase.histogram.checkpoint import Checkpoint
from dotphase.histogram.introspect import statistics
from dotphase.histogram.network import (
    FREE,
    Constraint,
    Network,
    constraint,
    in_single_precision,
    initialize_all,
    select,
)
from dotphase.histogram.settings import (
    BATCH_SIZE,
    RELEASE_EPOCHS,
    HistogramFields,
    HistogramSettings,
)
from dotphase.histogram.task import Split, draw
from dotphase.histogram.train import Plan, Trained, train
from dotphase.runtime.progress import Progress, ProgressCounter
from dotphase.storage.results import Result

#: Standard deviation of the noise at the release (arXiv:2402.03902).
NOISE = 1e-3
#: Default numbers of training sequences.
SAMPLES = (300, 1000, 3000, 10_000, 35_000)
#: Default number of runs for each, and of steps of a run.
RUNS, STEPS = 3, 10_000
#: Largest number of measurements of the held-out accuracy in a run.
MAX_MEASUREMENTS = 20
#: Separates the random numbers of these runs from those of the constrained ones.
STREAM = 0xF4EE
#: Arrays of an `Emergence` over samples and runs, with their long names.
SCORES = {
    "accuracy": "held-out accuracy",
    "train_loss": "training loss of the last epoch",
    "positional_score": "positional score",
    "semantic_score": "semantic score",
}


def _no_constraints(dimension: int, runs: int) -> Constraint:
    """Empty constraints, with a leading axis over runs."""
    return jax.tree.map(lambda leaf: np.tile(leaf, (runs, 1)), constraint(FREE, dimension))


@in_single_precision
def _unbind(networks: Network, keys: Array) -> Network:
    """Add noise to embeddings, query and key of constrained networks."""
    return jax.tree.map(np.asarray, _add_noise(networks, keys, NOISE))


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, None))
def _add_noise(network: Network, key: Array, noise: float) -> Network:
    def bound_parameters(network: Network) -> tuple[Array, ...]:
        return network.tokens, network.positions, network.query, network.key

    parts = bound_parameters(network)
    noisy = [
        part + noise * jax.random.normal(k, part.shape, jnp.float32)
        for part, k in zip(parts, jax.random.split(key, len(parts)), strict=True)
    ]
    return eqx.tree_at(bound_parameters, network, tuple(noisy))


def release(
    networks: Network,
    keys: Array,
    split: Split,
    *,
    epochs: int = RELEASE_EPOCHS,
    batch_size: int = BATCH_SIZE,
    checkpoint: Checkpoint | None = None,
    progress: Progress = None,
) -> tuple[Network, Trained]:
    """Continue the training of constrained networks without their constraint.

    Returns
    -------
    Network, Trained
        The initial networks, noise included, and the result of their training.

    Examples
    --------
    >>> import jax
    >>> small = {"task": dp.histogram.Task(samples=200), "dimension": 8}
    >>> result = dp.histogram.run("both", runs=1, epochs=1, **small)
    >>> split = dp.histogram.draw(small["task"])
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> initial, released = dp.histogram.release(result.trained.networks, keys, split, epochs=1)
    >>> released.accuracy.shape
    (2, 1)
    """
    initial = _unbind(networks, keys)
    constraints = _no_constraints(networks.value.shape[-1], len(keys))
    plan = Plan(optimizer="sgd", epochs=epochs, batch_size=batch_size)
    trained = train(
        initial, constraints, keys, split, plan,
        checkpoint=checkpoint, stage="release", progress=progress,
    )  # fmt: skip
    return initial, trained


@dataclass(frozen=True, eq=False)
class Emergence(Result):
    """Scores of free networks: a row per number of training sequences, a column per run.

    Attributes
    ----------
    settings : data, network sizes and seed
    steps : optimizer steps of a run
    samples : numbers of training sequences
    accuracy : accuracy on held-out sequences
    train_loss : mean over the batches of the last epoch
    positional_score, semantic_score : scores of `Statistics`
    seconds : wall time

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=99), "dimension": 8}
    >>> result = dp.histogram.emergence([60], runs=1, steps=20, **small)
    >>> result.samples.tolist(), result.semantic_score.shape
    ([60], (1, 1))
    """

    long_names: ClassVar[Mapping[str, str]] = {
        "samples": "training sequences",
        "steps": "optimizer steps",
        **SCORES,
    }
    dimensions: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "samples": ("samples",),
        **dict.fromkeys(SCORES, ("samples", "run")),
    }

    settings: HistogramSettings
    steps: int
    samples: Int[np.ndarray, " samples"] = field(repr=False)
    accuracy: Float[np.ndarray, "samples runs"] = field(repr=False)
    train_loss: Float[np.ndarray, "samples runs"] = field(repr=False)
    positional_score: Float[np.ndarray, "samples runs"] = field(repr=False)
    semantic_score: Float[np.ndarray, "samples runs"] = field(repr=False)
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain numbers, ready for JSON."""
        scores = {name: getattr(self, name).tolist() for name in ("samples", *SCORES)}
        return {
            "steps": self.steps, "seed": self.settings.seed, "seconds": self.seconds, **scores,
        }  # fmt: skip

    @property
    def description(self) -> Description:
        """Means and standard deviations over runs, by the number of training sequences."""
        names = ("accuracy", "positional_score", "semantic_score")
        header = "".join(f"{SCORES[name]:>22}" for name in names)
        rows = [("samples", header)]
        for k, n in enumerate(self.samples.tolist()):
            scores = [getattr(self, name)[k] for name in names]
            cells = [format_value(float(v.mean()), float(v.std())) for v in scores]
            rows.append((str(n), "".join(f"{cell:>22}" for cell in cells)))
        return Description(f"free networks, {self.steps} steps", tuple(rows))


def emergence(
    samples: Sequence[int] = SAMPLES,
    runs: int = RUNS,
    *,
    steps: int = STEPS,
    settings: HistogramSettings | None = None,
    progress: Progress = None,
    **changes: Unpack[HistogramFields],
) -> Emergence:
    """Train free networks on several numbers of sequences.

    Parameters
    ----------
    samples : sequence of int
        Numbers of training sequences; the smaller sets are part of the larger.
    runs : int
        Runs for each number of sequences.
    steps : int
        Optimizer steps of a run, rounded up to whole passes.
    settings : HistogramSettings, optional
        Data, network sizes and seed; the held-out sequences are those of `run`.
    progress : callable, optional
        Called with a `ProgressEvent` after each number of sequences.
    **changes
        Fields of `HistogramSettings` to replace in `settings`: task, dimension, hidden,
        batch_size, seed.

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=99), "dimension": 8}
    >>> result = dp.histogram.emergence([60], runs=1, steps=20, **small)
    >>> result.samples.tolist(), result.semantic_score.shape
    ([60], (1, 1))
    """
    started = time.perf_counter()
    settings = replace_fields(settings or HistogramSettings(), changes)
    split = draw(settings.task, settings.seed)
    available = len(split.train)
    sizes = [validation.integer("samples", n, at_least=1, at_most=available) for n in samples]
    if not sizes:
        raise InvalidInput("samples", list(samples), "must have at least one number")
    runs = settings.check_runs(runs)
    steps = validation.integer("steps", steps, at_least=1)
    initial, keys = _initialize(settings, runs)
    counter = ProgressCounter("free networks", len(sizes), progress)
    columns = []
    for n in sizes:
        part = Split(split.train[:n], split.train_counts[:n], *split[2:])
        columns.append(_train_free(initial, keys, part, steps, settings))
        counter.tick()
    scores = dict(zip(SCORES, map(np.stack, zip(*columns, strict=True)), strict=True))
    return Emergence(
        settings=settings,
        steps=steps,
        samples=np.asarray(sizes),
        **scores,
        seconds=time.perf_counter() - started,
    )


def _train_free(
    initial: Network, keys: Array, split: Split, steps: int, settings: HistogramSettings
) -> list[np.ndarray]:
    """Train free networks; return the `SCORES` of each run."""
    runs, batch_size = len(keys), settings.batch_size
    passes = -(-steps // -(-len(split.train) // batch_size))
    passes_per_epoch = -(-passes // MAX_MEASUREMENTS)
    plan = Plan(
        epochs=-(-passes // passes_per_epoch), batch_size=batch_size, passes=passes_per_epoch
    )
    constraints = _no_constraints(settings.dimension, runs)
    trained = train(initial, constraints, keys, split, plan)
    measured = [statistics(select(trained.networks, k), split.held_out) for k in range(runs)]
    return [
        trained.final_accuracy,
        trained.train_loss[:, -1],
        np.asarray([run.positional_score for run in measured]),
        np.asarray([run.semantic_score for run in measured]),
    ]


@in_single_precision
def _initialize(settings: HistogramSettings, runs: int) -> tuple[Network, Array]:
    """Initial networks and the keys of their batches."""
    root = jax.random.fold_in(jax.random.key(settings.seed), STREAM)
    keys = jax.vmap(lambda run: jax.random.split(jax.random.fold_in(root, run)))(jnp.arange(runs))
    task = settings.task
    networks = initialize_all(
        keys[:, 0], task.symbols, task.length, settings.dimension, settings.hidden
    )
    return networks, keys[:, 1]
