"""Which mechanism does a network find that is free to use both?

Unconstrained networks are trained from random initialisation on n sequences, for several n and
with the same number of steps whatever n is, and judged by the scores of their attention.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase._numerics import validate
from dotphase.errors import InvalidInput
from dotphase.histogram.checkpoint import read_arrays, write_arrays
from dotphase.histogram.introspect import statistics
from dotphase.histogram.network import FREE, Network, in_single_precision, initialise_all, select
from dotphase.histogram.release import same_rule
from dotphase.histogram.task import Split, Task, draw
from dotphase.histogram.train import BATCH, Plan, Trained, train

#: Numbers of training sequences, runs of each, and steps of a run.
SAMPLES, RUNS, STEPS = (300, 1000, 3000, 10_000, 35_000), 3, 10_000
#: Looks at the held-out accuracy in the course of a run, at most.
LOOKS = 20
#: Sets these runs' random numbers apart from those of the constrained ones.
STREAM = 0xF4EE
#: Arrays of an `Emergence`.
NAMES = ("samples", "accuracy", "train_loss", "positional_score", "semantic_score")


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
        about = {"task": asdict(self.task), "steps": self.steps, "seed": self.seed,
                 "seconds": self.seconds}  # fmt: skip
        arrays = {name: getattr(self, name) for name in NAMES}
        write_arrays(target, {**arrays, "about": np.asarray(json.dumps(about))})
        return target


def load_emergence(path: str | Path) -> Emergence:
    """A study that was written by `Emergence.save`."""
    arrays = read_arrays(Path(path), "emergence")
    if not {*NAMES, "about"} <= arrays.keys():
        raise InvalidInput("emergence", str(path), "must be a file written by this version")
    about: dict[str, Any] = json.loads(str(arrays.pop("about")))
    about |= {**arrays, "task": Task(**about["task"])}
    return Emergence(**about)


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
        Runs for each, and optimiser steps of a run, rounded up to whole passes.
    seed, task, dimension, hidden, batch
        As in `experiment`; the held-out sequences are the same.
    on_size : callable, optional
        Called with each number of sequences when it is done.
    """
    began = time.perf_counter()
    task = Task() if task is None else task
    split = draw(task, seed)
    sizes = [validate.whole("samples", n, at_least=1, at_most=len(split.train)) for n in samples]
    if not sizes:
        raise InvalidInput("samples", list(samples), "must have at least one number")
    runs = validate.whole("runs", runs, at_least=1)
    steps = validate.whole("steps", steps, at_least=1)
    rows: list[tuple[Trained, list[Any]]] = []
    for n in sizes:
        part = Split(split.train[:n], split.train_counts[:n], *split[2:])
        trained = _train_free(part, task, runs, steps, seed, dimension, hidden, batch)
        judged = [statistics(select(trained.networks, k), split.held_out) for k in range(runs)]
        rows.append((trained, judged))
        if on_size is not None:
            on_size(n)
    return Emergence(
        task=task,
        steps=steps,
        seed=seed,
        samples=np.asarray(sizes),
        accuracy=np.stack([trained.final_accuracy for trained, _ in rows]),
        train_loss=np.stack([trained.train_loss[:, -1] for trained, _ in rows]),
        positional_score=np.asarray([[s.positional_score for s in judged] for _, judged in rows]),
        semantic_score=np.asarray([[s.semantic_score for s in judged] for _, judged in rows]),
        seconds=time.perf_counter() - began,
    )


def _train_free(
    split: Split, task: Task, runs: int, steps: int, seed: int, dimension: int, hidden: int,
    batch: int,
) -> Trained:  # fmt: skip
    starts, keys = _begin(task, runs, seed, dimension, hidden)
    passes = -(-steps // -(-len(split.train) // batch))
    together = -(-passes // LOOKS)
    plan = Plan(epochs=-(-passes // together), batch=batch, passes=together)
    return train(starts, same_rule(FREE, dimension, runs), keys, split, plan)


@in_single_precision
def _begin(task: Task, runs: int, seed: int, dimension: int, hidden: int) -> tuple[Network, Array]:
    root = jax.random.fold_in(jax.random.key(seed), STREAM)
    keys = jax.vmap(lambda run: jax.random.split(jax.random.fold_in(root, run)))(jnp.arange(runs))
    return initialise_all(keys[:, 0], task.symbols, task.length, dimension, hidden), keys[:, 1]
