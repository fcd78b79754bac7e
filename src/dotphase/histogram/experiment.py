"""`run`: train networks that count by position or by meaning."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.errors import Interrupted, InvalidInput
from dotphase.finite_d.prng_keys import keys_at
from dotphase.histogram import free_networks
from dotphase.histogram.checkpoint import Checkpoint
from dotphase.histogram.interpolation import loss_between
from dotphase.histogram.introspect import Statistics, statistics
from dotphase.histogram.network import (
    MECHANISMS,
    Constraint,
    Network,
    constrain_all,
    constraint,
    distance,
    in_single_precision,
    initialize_all,
    select,
    summed_distance,
)
from dotphase.histogram.result import Distances, Experiment
from dotphase.histogram.settings import ExperimentFields, ExperimentSettings
from dotphase.histogram.task import Split, draw
from dotphase.histogram.train import Plan, Trained, train
from dotphase.runtime.progress import Progress

#: Files in the checkpoint folder.
TRAINING, RELEASE = "training.checkpoint.npz", "release.checkpoint.npz"
#: Purposes of the random keys of a run.
PURPOSES = ("start", "training", "release")
#: Settings that a checkpoint of the training does not depend on.
NOT_IN_CHECKPOINT = ("epochs", "release", "release_epochs", "landscape")

#: Mechanism and index of each run.
Labels = list[tuple[str, int]]


def run(
    mechanism: str = "both",
    runs: int = 10,
    *,
    settings: ExperimentSettings | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = None,
    **changes: Unpack[ExperimentFields],
) -> Experiment:
    """Train transformers to count, with an imposed mechanism; all runs are trained together.

    Parameters
    ----------
    mechanism : {"semantic", "positional", "both"}
        Input of query and key: symbols or positions.
    runs : int
        Runs per mechanism.
    settings : ExperimentSettings, optional
        Data, network sizes and training.
    checkpoint : path, optional
        Folder that receives the state after every epoch, and from which training resumes. A
        resumed run gives the same result as an uninterrupted one: to the last bit on a CPU; a GPU
        may choose other kernels after a restart.
    progress : callable, optional
        Called with a `ProgressEvent` after every epoch, with stage "training" or "release". Its
        result has the rows train loss, held-out loss and accuracy of all runs.
    **changes
        Fields of `ExperimentSettings` to replace in `settings`: task, dimension, hidden,
        batch_size, seed, epochs, target, release, release_epochs, landscape.

    Returns
    -------
    Experiment
        Networks, learning curves, attention scores and distances.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` with the experiment after the finished epochs.

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=200), "dimension": 8}
    >>> result = dp.histogram.run("both", runs=1, epochs=1, **small)
    >>> result.trained.accuracy.shape
    (2, 1)
    """
    started = time.perf_counter()
    settings = replace_fields(settings or ExperimentSettings(), changes)
    validation.choice("mechanism", mechanism, (*MECHANISMS, "both"))
    if settings.landscape and mechanism != "both":
        raise InvalidInput("mechanism", mechanism, "must be both for the landscape between them")
    runs = settings.check_runs(runs)
    names = MECHANISMS if mechanism == "both" else (mechanism,)
    labels = [(name, index) for name in names for index in range(runs)]
    files = _checkpoints(checkpoint, mechanism, runs, settings)
    split = draw(settings.task, settings.seed)
    initial, constraints = _initialize(labels, settings)
    plan = Plan(epochs=settings.epochs, target=settings.target, batch_size=settings.batch_size)

    def result(trained: Trained, released: Trained | None = None) -> Experiment:
        return Experiment(
            settings=settings,
            mechanism=tuple(name for name, _ in labels),
            run=tuple(index for _, index in labels),
            trained=trained,
            statistics=_statistics(trained, split),
            distances=_distances(initial, constraints, trained, released),
            released=released,
            released_statistics=() if released is None else _statistics(released, split),
            device=jax.devices()[0].device_kind,
            seconds=time.perf_counter() - started,
        )

    try:
        trained = train(
            initial, constraints, _keys(labels, settings.seed, "training"), split, plan,
            checkpoint=files[0], progress=progress,
        )  # fmt: skip
    except Interrupted as stop:
        raise Interrupted(result(stop.finished)) from None  # type: ignore[arg-type]
    released = None
    if settings.release:
        try:
            _, released = free_networks.release(
                trained.networks, _keys(labels, settings.seed, "release"), split,
                epochs=settings.release_epochs, batch_size=settings.batch_size,
                checkpoint=files[1], progress=progress,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise Interrupted(result(trained)) from None
    experiment = result(trained, released)
    if settings.landscape:
        first, second = (experiment.network(name) for name in MECHANISMS)
        experiment = replace(experiment, landscape=loss_between(first, second, split))
    return replace(experiment, seconds=time.perf_counter() - started)


def _checkpoints(
    folder: str | Path | None, mechanism: str, runs: int, settings: ExperimentSettings
) -> tuple[Checkpoint | None, Checkpoint | None]:
    """Checkpoints of the training and of the release."""
    if folder is None:
        return None, None
    path = Path(folder)
    if not path.is_dir():
        raise InvalidInput("checkpoint", str(folder), "must be an existing folder")
    config: dict[str, Any] = {"mechanism": mechanism, "runs": runs, **settings.to_dict()}
    for name in NOT_IN_CHECKPOINT:
        del config[name]
    # The release starts at the end of training, so it depends on the number of epochs too.
    release = Checkpoint(path / RELEASE, {**config, "epochs": settings.epochs})
    return Checkpoint(path / TRAINING, config, max_epochs=settings.epochs), release


@in_single_precision
def _initialize(labels: Labels, settings: ExperimentSettings) -> tuple[Network, Constraint]:
    """Initialize and constrain every run, from its label and the seed alone."""
    task, dimension = settings.task, settings.dimension
    keys = _keys(labels, settings.seed, "start")
    constraints = jax.tree.map(
        lambda *leaves: np.stack(leaves), *[constraint(name, dimension) for name, _ in labels]
    )
    networks = initialize_all(keys, task.symbols, task.length, dimension, settings.hidden)
    return jax.tree.map(np.asarray, constrain_all(networks, constraints)), constraints


@in_single_precision
def _keys(labels: Labels, seed: int, purpose: str) -> Array:
    """Keys of the runs, different for each purpose."""
    indices = [(PURPOSES.index(purpose), MECHANISMS.index(name), run) for name, run in labels]
    return keys_at(jax.random.key(seed), jnp.asarray(indices))


def _statistics(trained: Trained, split: Split) -> tuple[Statistics, ...]:
    """Statistics of every run on the held-out sequences."""
    runs = range(len(trained.epochs))
    return tuple(statistics(select(trained.networks, run), split.held_out) for run in runs)


def _distances(
    initial: Network, constraints: Constraint, trained: Trained, released: Trained | None
) -> Distances:
    """Distances of every run, before and after the release."""
    networks = trained.networks
    distances = Distances(distance(initial, networks), summed_distance(initial, networks))
    if released is None:
        return distances
    # Query and key stay free; embeddings are compared in the halves of the constraint.
    masks = constraints._replace(attention=np.ones_like(constraints.attention))
    confined = jax.tree.map(np.asarray, constrain_all(released.networks, masks))
    return replace(
        distances,
        after_release=distance(networks, released.networks),
        summed_after_release=summed_distance(networks, confined),
    )
