"""Networks without a constraint: do imposed solutions stay, and which one is found unaided?

A solution that was imposed is written into the unconstrained network, with a little noise on the
parameters that the constraint had bound, and training goes on by plain gradient steps: what is
not a minimum of the unconstrained loss would leave. And networks that were never constrained are
trained from random initialisation on n sequences, for several n and with the same number of steps
whatever n is, and judged by the scores of their attention.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.histogram.checkpoint import Checkpoint
from dotphase.histogram.introspect import statistics
from dotphase.histogram.network import (
    FREE,
    Constraint,
    Network,
    constraint,
    in_single_precision,
    initialise_all,
    select,
)
from dotphase.histogram.task import Split, Task, draw
from dotphase.histogram.train import BATCH, Plan, Trained, check_runs, train
from dotphase.storage.files import read_arrays, take_metadata, write_arrays

#: Standard deviation of the noise, and epochs of gradient steps (arXiv:2402.03902).
NOISE, EPOCHS = 1e-3, 100
#: Numbers of training sequences, runs of each, and steps of a run.
SAMPLES, RUNS, STEPS = (300, 1000, 3000, 10_000, 35_000), 3, 10_000
#: Looks at the held-out accuracy in the course of a run, at most.
LOOKS = 20
#: Sets these runs' random numbers apart from those of the constrained ones.
STREAM = 0xF4EE
#: Arrays of an `Emergence`.
NAMES = ("samples", "accuracy", "train_loss", "positional_score", "semantic_score")


def _no_rules(dimension: int, runs: int) -> Constraint:
    """No constraint for any run, with the leading axis over them."""
    return jax.tree.map(lambda leaf: np.tile(leaf, (runs, 1)), constraint(FREE, dimension))


@in_single_precision
def _unbind(networks: Network, keys: Array) -> Network:
    """Constrained networks with noise on embeddings, query and key: points of the free space."""
    return jax.tree.map(np.asarray, _add_noise(networks, keys, NOISE))


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, None))
def _add_noise(network: Network, key: Array, noise: float) -> Network:
    def bound(some: Network) -> tuple[Array, ...]:
        return some.tokens, some.positions, some.query, some.key

    parts = bound(network)
    noisy = [
        part + noise * jax.random.normal(k, part.shape, jnp.float32)
        for part, k in zip(parts, jax.random.split(key, len(parts)), strict=True)
    ]
    return eqx.tree_at(bound, network, tuple(noisy))


def release(
    networks: Network,
    keys: Array,
    split: Split,
    *,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    store: Checkpoint | None = None,
    on_epoch: Callable[[int, np.ndarray], None] | None = None,
) -> tuple[Network, Trained]:
    """Train constrained networks on without their constraint.

    Returns
    -------
    Network, Trained
        The points they were released at, noise included, and what became of them.

    Examples
    --------
    >>> import jax
    >>> result = dp.histogram.run("both", 1, 1, task=dp.histogram.Task(samples=200), dimension=8)
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> starts, released = dp.histogram.release(result.trained.networks, keys, split, epochs=1)
    >>> released.accuracy.shape
    (2, 1)
    """
    starts = _unbind(networks, keys)
    rules = _no_rules(networks.value.shape[-1], len(keys))
    plan = Plan(optimizer="sgd", epochs=epochs, batch=batch)
    trained = train(starts, rules, keys, split, plan, store=store, on_epoch=on_epoch)
    return starts, trained


@dataclass(frozen=True)
class Emergence:
    """What free networks found; one row per number of training sequences, one column per run.

    Attributes
    ----------
    task, steps, seed : what was trained, how long, and its seed
    samples : training sequences
    accuracy : on held-out sequences
    train_loss : mean over the batches of the last epoch
    positional_score, semantic_score : see `Statistics`
    seconds : time it took

    Examples
    --------
    >>> found = dp.histogram.emergence([60], 1, 20, task=dp.histogram.Task(samples=99), dimension=8)
    >>> found.samples.tolist(), found.semantic_score.shape
    ([60], (1, 1))
    """

    task: Task
    steps: int
    seed: int
    samples: Int[np.ndarray, " sizes"]
    accuracy: Float[np.ndarray, "sizes runs"]
    train_loss: Float[np.ndarray, "sizes runs"]
    positional_score: Float[np.ndarray, "sizes runs"]
    semantic_score: Float[np.ndarray, "sizes runs"]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        shown = {name: getattr(self, name).tolist() for name in NAMES}
        return {"steps": self.steps, "seed": self.seed, "seconds": self.seconds, **shown}

    def __str__(self) -> str:
        lines = ["free networks: samples, held-out accuracy, positional score, semantic score"]
        for row, n in enumerate(self.samples):
            parts = [
                f"{values[row].mean():.3f} ± {values[row].std():.3f}"
                for values in (self.accuracy, self.positional_score, self.semantic_score)
            ]
            lines.append(f"  {n:6d}  " + "  ".join(parts))
        return "\n".join(lines)

    def save(self, path: str | Path) -> Path:
        """Write everything as one .npz; see `load_emergence`."""
        target = Path(path)
        numbers = {"steps": self.steps, "seed": self.seed, "seconds": self.seconds}
        arrays = {name: getattr(self, name) for name in NAMES}
        write_arrays(target, arrays, {"task": asdict(self.task), **numbers})
        return target


def load_emergence(path: str | Path) -> Emergence:
    """A study that was written by `Emergence.save`.

    Examples
    --------
    >>> found = dp.histogram.emergence([60], 1, 20, task=dp.histogram.Task(samples=99), dimension=8)
    >>> dp.histogram.load_emergence(found.save("emergence.npz")).steps
    20
    """
    arrays = read_arrays(Path(path), "emergence")
    about = take_metadata(arrays)
    if arrays.keys() != set(NAMES) or "task" not in about:
        raise InvalidInput("emergence", str(path), "must be a file written by this version")
    return Emergence(**{**about, **arrays, "task": Task(**about["task"])})


def emergence(
    samples: Sequence[int] = SAMPLES,
    runs: int = RUNS,
    steps: int = STEPS,
    *,
    seed: int = 0,
    task: Task | None = None,
    dimension: int = 64,
    hidden: int = 128,
    batch: int = BATCH,
    on_size: Callable[[int], None] | None = None,
) -> Emergence:
    """Train free networks on several numbers of sequences.

    Parameters
    ----------
    samples : sequence of int
        Numbers of training sequences; the smaller sets are part of the larger.
    runs, steps : int
        Runs for each, and optimizer steps of a run, rounded up to whole passes.
    seed, task, dimension, hidden, batch
        As in `run`; the held-out sequences are the same.
    on_size : callable, optional
        Called with each number of sequences when it is done.

    Examples
    --------
    >>> found = dp.histogram.emergence([60], 1, 20, task=dp.histogram.Task(samples=99), dimension=8)
    >>> found.samples.tolist(), found.semantic_score.shape
    ([60], (1, 1))
    """
    began = time.perf_counter()
    task = Task() if task is None else task
    split = draw(task, seed)
    sizes = [
        validation.integer("samples", n, at_least=1, at_most=len(split.train)) for n in samples
    ]
    if not sizes:
        raise InvalidInput("samples", list(samples), "must have at least one number")
    runs = check_runs(runs, task, dimension, hidden)
    steps = validation.integer("steps", steps, at_least=1)
    starts, keys = _begin(task, runs, seed, dimension, hidden)
    rules = _no_rules(dimension, runs)
    found: list[list[np.ndarray]] = []
    for n in sizes:
        part = Split(split.train[:n], split.train_counts[:n], *split[2:])
        passes = -(-steps // -(-n // batch))
        together = -(-passes // LOOKS)
        plan = Plan(epochs=-(-passes // together), batch=batch, passes=together)
        trained = train(starts, rules, keys, part, plan)
        judged = [statistics(select(trained.networks, k), split.held_out) for k in range(runs)]
        scores = np.asarray([[some.positional_score, some.semantic_score] for some in judged]).T
        found.append([trained.final_accuracy, trained.train_loss[:, -1], *scores])
        if on_size is not None:
            on_size(n)
    columns: list[Any] = [np.asarray(sizes), *map(np.stack, zip(*found, strict=True))]
    arrays = dict(zip(NAMES, columns, strict=True))
    return Emergence(
        task=task, steps=steps, seed=seed, seconds=time.perf_counter() - began, **arrays
    )


@in_single_precision
def _begin(task: Task, runs: int, seed: int, dimension: int, hidden: int) -> tuple[Network, Array]:
    root = jax.random.fold_in(jax.random.key(seed), STREAM)
    keys = jax.vmap(lambda run: jax.random.split(jax.random.fold_in(root, run)))(jnp.arange(runs))
    return initialise_all(keys[:, 0], task.symbols, task.length, dimension, hidden), keys[:, 1]
