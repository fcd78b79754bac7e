"""The experiment of the paper's opening: the same network, made to count in two ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.config import validation
from dotphase.errors import Interrupted, InvalidInput
from dotphase.finite_d.prng_keys import keys_at
from dotphase.histogram.between import loss_between
from dotphase.histogram.checkpoint import Checkpoint
from dotphase.histogram.free import EPOCHS as RELEASE_EPOCHS
from dotphase.histogram.free import release as release_networks
from dotphase.histogram.introspect import Statistics, statistics
from dotphase.histogram.network import (
    MECHANISMS,
    Constraint,
    Network,
    constrain_all,
    constraint,
    distance,
    in_single_precision,
    initialise_all,
    select,
    summed_distance,
)
from dotphase.histogram.result import Experiment, Moved
from dotphase.histogram.task import Split, Task, draw
from dotphase.histogram.train import BATCH, Plan, Trained, check_runs, train

#: Files of a checkpoint folder.
TRAINING, RELEASE = "training.checkpoint.npz", "release.checkpoint.npz"

#: What random numbers are drawn for.
PURPOSES = ("start", "training", "release")

#: Called with the stage, the epochs it has done, and each run's (train loss, held-out loss,
#: accuracy).
OnEpoch = Callable[[str, int, np.ndarray], None]


def run(
    mechanism: str = "both",
    runs: int = 10,
    epochs: int = 200,
    *,
    seed: int = 0,
    target: float | None = None,
    release: bool = False,
    release_epochs: int = RELEASE_EPOCHS,
    landscape: bool = False,
    task: Task | None = None,
    dimension: int = 64,
    hidden: int = 128,
    batch: int = BATCH,
    checkpoint: str | Path | None = None,
    on_epoch: OnEpoch | None = None,
) -> Experiment:
    """Train transformers to count, with a mechanism imposed; all runs together.

    Parameters
    ----------
    mechanism : {"semantic", "positional", "both"}
        What query and key may read.
    runs, epochs : int
        Runs per mechanism, and most epochs of each (Adam, 1e-3).
    seed : int
        Seed of everything random: the data, which all runs share, and the runs' starts and
        batches. Run k is the same whatever `runs` is.
    target : float, optional
        Held-out accuracy at which a run stops.
    release, release_epochs : bool, int
        Whether to lift the constraint afterwards and train on by SGD.
    landscape : bool
        Whether to work out the loss between the first semantic and positional solution.
    task : Task, optional
        The data; the paper's if not given.
    dimension, hidden, batch : int
        Sizes of the network and of a batch.
    checkpoint : path, optional
        Folder in which the state is kept after every epoch, and from which training goes on if
        it is there. A killed run that goes on gives the same result as one that was not
        killed: to the last bit on a CPU; a GPU may choose other kernels after a restart.
    on_epoch : callable, optional
        Called after every epoch; see `OnEpoch`.

    Returns
    -------
    Experiment
        `Experiment.save` writes it, `load` reads it back.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` that carries the experiment as far as it came.

    Examples
    --------
    >>> result = dp.histogram.run("both", 1, 1, task=dp.histogram.Task(samples=200), dimension=8)
    >>> result.trained.accuracy.shape
    (2, 1)
    """
    began = time.perf_counter()
    validation.choice("mechanism", mechanism, (*MECHANISMS, "both"))
    if landscape and mechanism != "both":
        raise InvalidInput("mechanism", mechanism, "must be both for the landscape between them")
    names = MECHANISMS if mechanism == "both" else (mechanism,)
    task = Task() if task is None else task
    dimension = validation.integer("dimension", dimension, at_least=2)
    hidden = validation.integer("hidden", hidden, at_least=1)
    runs = check_runs(runs, task, dimension, hidden)
    plan = Plan(epochs=epochs, target=target, batch=batch)
    later = validation.integer("release_epochs", release_epochs, at_least=1)
    identity = {
        "task": asdict(task),
        "mechanism": mechanism,
        "runs": runs,
        "seed": validation.integer("seed", seed, at_least=0),
        "target": target,
        "dimension": dimension,
        "hidden": hidden,
        "batch": batch,
    }
    stores = _stores(checkpoint, identity, epochs)
    split = draw(task, seed)
    labels = [(name, number) for name in names for number in range(runs)]
    starts, rules = _begin(labels, task, dimension, hidden, seed)

    def told(stage: str) -> Callable[[int, np.ndarray], None] | None:
        return None if on_epoch is None else lambda done, row: on_epoch(stage, done, row)

    settings = {**identity, "epochs": epochs, "release_epochs": later if release else None}

    def result(trained: Trained, released: Trained | None = None) -> Experiment:
        return Experiment(
            task=task,
            settings=settings,
            mechanism=tuple(name for name, _ in labels),
            run=tuple(number for _, number in labels),
            trained=trained,
            statistics=_statistics(trained, split),
            moved=_moved(starts, rules, trained, released),
            released=released,
            released_statistics=() if released is None else _statistics(released, split),
            device=jax.devices()[0].device_kind,
            seconds=time.perf_counter() - began,
        )

    try:
        trained = train(
            starts, rules, _keys(labels, seed, "training"), split, plan,
            store=stores[0], on_epoch=told("training"),
        )  # fmt: skip
    except Interrupted as stop:
        raise Interrupted(result(stop.finished)) from None  # type: ignore[arg-type]
    released = None
    if release:
        try:
            _, released = release_networks(
                trained.networks, _keys(labels, seed, "release"), split, epochs=later, batch=batch,
                store=stores[1], on_epoch=told("release"),
            )  # fmt: skip
        except KeyboardInterrupt:
            raise Interrupted(result(trained)) from None
    done = result(trained, released)
    if landscape:
        first, second = (done.network(name) for name in MECHANISMS)
        done = replace(done, landscape=loss_between(first, second, split))
    return replace(done, seconds=time.perf_counter() - began)


def _stores(
    folder: str | Path | None, identity: dict[str, Any], epochs: int
) -> tuple[Checkpoint | None, Checkpoint | None]:
    if folder is None:
        return None, None
    path = Path(folder)
    if not path.is_dir():
        raise InvalidInput("checkpoint", str(folder), "must be a folder that exists")
    training = Checkpoint(path / TRAINING, identity, most=epochs)
    # A release begins where training ended, so it depends on the number of epochs too.
    return training, Checkpoint(path / RELEASE, {**identity, "epochs": epochs})


@in_single_precision
def _begin(
    labels: list[tuple[str, int]], task: Task, dimension: int, hidden: int, seed: int
) -> tuple[Network, Constraint]:
    """Starts and constraints of the runs; those of a run depend on its label alone."""
    keys = _keys(labels, seed, "start")
    each = [constraint(name, dimension) for name, _ in labels]
    rules = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    drawn = initialise_all(keys, task.symbols, task.length, dimension, hidden)
    return jax.tree.map(np.asarray, constrain_all(drawn, rules)), rules


@in_single_precision
def _keys(labels: list[tuple[str, int]], seed: int, purpose: str) -> Array:
    """Keys of the runs, different for each purpose."""
    numbers = [(PURPOSES.index(purpose), MECHANISMS.index(name), run) for name, run in labels]
    return keys_at(jax.random.key(seed), jnp.asarray(numbers))


def _statistics(trained: Trained, split: Split) -> tuple[Statistics, ...]:
    return tuple(
        statistics(select(trained.networks, row), split.held_out)
        for row in range(len(trained.epochs))
    )


def _moved(starts: Network, rules: Constraint, trained: Trained, released: Trained | None) -> Moved:
    found = trained.networks
    moved = Moved(distance(starts, found), summed_distance(starts, found))
    if released is None:
        return moved
    ended = released.networks
    # Query and key keep what they have gained; embeddings are compared in their own halves.
    own = Constraint(rules.tokens, rules.positions, np.ones_like(rules.attention))
    confined = jax.tree.map(np.asarray, constrain_all(ended, own))
    return replace(
        moved,
        after_release=distance(found, ended),
        summed_after_release=summed_distance(found, confined),
    )
