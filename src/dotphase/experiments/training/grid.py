"""Training on a grid of alpha and of a parameter of the model, from several starts.

A compiled call trains many cells (alpha, value, seed), each in a slot; the next cell takes the slot
of a finished one. Data sets are drawn when their cell begins. Padding lets data sets of different
sizes share compiled code: additional sentences have weight zero. The starts of a cell share its
data set, so that one pass over the tokens serves all of them, and their training losses differ by
the start alone. Results are stored on the way; an interrupted grid resumes.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.errors import InvalidInput
from dotphase.experiments.training.grid_results import GridResults
from dotphase.experiments.training.throughput import Cost, Throughput, speed_of_device
from dotphase.finite_d.batches import choose_runs_per_batch, on_cpu, run_bytes, vmap_runs
from dotphase.finite_d.continuous_batching import SlotWork, run_in_slots
from dotphase.finite_d.datasets import count_sentences, draw_dataset, position_vectors
from dotphase.finite_d.initialization import StartFunction, initial_weights, resolve_start
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.preparation import Prepared, prepare
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.finite_d.test_error import attention_error, quadrature
from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import Rule
from dotphase.runtime import memory_limit
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress, ProgressCallback, ProgressEvent, reporter
from dotphase.storage.paths import check_writable
from dotphase.training.loop import RunState
from dotphase.training.settings import TrainingFields, TrainingSettings
from dotphase.training.single_run import Recipe, finish, initialize_training, optimize

#: Data sets are padded to the largest size, or to half of it. The second size is worth its
#: compilation if the tokens of all cells take more bytes than this, on a CPU and on an accelerator.
SECOND_SIZE_BYTES = 2**32, 2**40
#: Most cells at once on a CPU.
MAX_CPU_CELLS = 16
#: Steps per compiled call; finished cells are replaced between calls.
STEPS_PER_CALL = 8


class Family(NamedTuple):
    """Models that differ in numbers only, with their arrays stacked."""

    members: tuple[Model, ...]  #: the models
    #: stacked arrays, and positional encodings
    arrays: Any
    positions: Float[Array, "members tokens d"]
    shared: Any  #: the common part of the models


@in_double_precision
def grid(
    family: Callable[[float], Model],
    alphas: Sequence[float],
    values: Sequence[float],
    d: int,
    parameter: str = "omega",
    *,
    seeds: int = 2,
    starts: str | Sequence[str] = ("semantic", "positional"),
    out: str | Path | None = None,
    throughput: bool = False,
    progress: Progress = None,
    settings: TrainingSettings | None = None,
    **changes: Unpack[TrainingFields],
) -> xr.Dataset:
    """Train the students of a family of models on a grid.

    Parameters
    ----------
    family : callable
        The model for a value of the parameter. Models may differ in their numbers only.
    alphas, values : sequences of float
        Sentences per dimension, and values of the parameter.
    d : int
        Dimension of a token.
    parameter : str
        Name of the parameter in the result.
    seeds : int
        Data sets per cell.
    starts : names of starts, or one name
        As in `train`; they share the data of a cell.
    out : path, optional
        An .npz file with the finished cells, written every few seconds. An existing one is
        resumed.
    throughput : bool
        Also time single gradients and a plain copy, for the attributes of the result.
    progress : bool or callable, optional
        Receives an event for finished cells (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `train`, in double precision. By default steps are chosen for the final weights, not
        for the path.

    Returns
    -------
    xarray.Dataset
        Over alpha, the parameter, seed and start, with settings and throughput as attributes.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> runs["train_loss"].dims
    ('alpha', 'omega', 'seed', 'start')
    """
    started = time.perf_counter()
    settings = replace_fields(settings or TrainingSettings(), changes).for_endpoint()
    starts = (starts,) if isinstance(starts, str) else tuple(starts)
    parameters = [float(value) for value in values]
    models = stack([family(value) for value in parameters], parameter, d)
    seeds = validation.integer("seeds", seeds, at_least=1)
    coords: dict[str, list[Any]] = {
        "alpha": [float(alpha) for alpha in alphas],
        parameter: parameters,
        "seed": list(range(seeds)),
        "start": list(starts),
    }
    path = None if out is None else check_writable("out", out, (".npz",))
    cells = GridResults(coords, {"d": d, **settings.endpoint_config()}, models.members, path)
    cost = _train_cells(cells, models, starts, d, settings, reporter(progress))
    rates = {}
    if throughput:
        largest = count_sentences(models.members[0], max(alphas), d)
        rates = speed_of_device(models.members[0], d, largest, settings.runs_per_batch)
    speed = Throughput(cost.runs, time.perf_counter() - started, cost.useful_bytes, **rates)
    return cells.dataset(speed)


def _train_cells(
    cells: GridResults,
    models: Family,
    starts: tuple[str, ...],
    d: int,
    settings: TrainingSettings,
    report: ProgressCallback,
) -> Cost:
    """Train the unfinished cells, those of the largest padded size first."""
    model, cost = models.members[0], Cost()
    for member in models.members:
        functions = tuple(resolve_start(member, start, settings.scale) for start in starts)
    sizes = [count_sentences(model, alpha, d) for alpha in cells.coords["alpha"]]
    recipe, root = settings.recipe(d), jax.random.key(settings.seed)
    drawn_from = (root, settings.teacher_norm)
    token_bytes = model.length * d * 8
    padded = _padded_sizes(sizes, token_bytes * cells.done[0].size)

    def receive(indices: list[tuple[int, ...]], results: dict[str, np.ndarray]) -> None:
        cells.add(indices, results)
        steps = results["iterations"].sum(axis=1)
        sentences = np.asarray([sizes[i] for i, _, _ in indices])
        cost.useful_bytes += float(np.sum(steps * sentences)) * 2 * token_bytes
        cost.runs += len(indices) * len(starts)
        report(ProgressEvent("grid", int(cells.done.sum()), cells.done.size))

    for size in sorted(set(padded), reverse=True):
        unfinished = [index for index in np.ndindex(cells.done.shape)
                      if padded[index[0]] == size and not cells.done[index]]  # fmt: skip
        n_slots = choose_runs_per_batch(
            settings.runs_per_batch, run_bytes(model, size, d, np.dtype("float64")),
            len(unfinished), d, cpu_limit=MAX_CPU_CELLS,
        )  # fmt: skip
        work = _work(
            models, functions, recipe, quadrature(model), drawn_from, np.asarray(sizes), size
        )
        with memory_limit.explain_out_of_memory(n_slots), cells.writing():
            run_in_slots(work, unfinished, n_slots, receive)
    return cost


def _padded_sizes(sizes: Sequence[int], sentence_bytes: int) -> list[int]:
    """Padded size of every data set; all cells together take `sentence_bytes` per sentence."""
    limit = SECOND_SIZE_BYTES[0 if on_cpu() else 1]
    quantum = -(-max(sizes) // (2 if sum(sizes) * sentence_bytes > limit else 1))
    return [-(-n // quantum) * quantum for n in sizes]


def stack(members: Sequence[Model], parameter: str, d: int) -> Family:
    """Stack the arrays of models that agree in everything but numbers."""
    if not members:
        raise InvalidInput("values", members, "must be one or more numbers")
    parts = [eqx.partition(member, eqx.is_array_like) for member in members]
    shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(arrays)] for arrays, _ in parts]
    for (_, shared), shape in zip(parts, shapes, strict=True):
        if shape != shapes[0] or not eqx.tree_equal(shared, parts[0][1]):
            rule = "must give models of the same functions and shapes: only numbers may differ"
            raise InvalidInput("family", f"models by {parameter}", rule)
    arrays = [arrays for arrays, _ in parts]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *arrays)
    positions = jnp.stack([jnp.asarray(position_vectors(member, d)) for member in members])
    return Family(tuple(members), stacked, positions, parts[0][1])


class _Slots(NamedTuple):
    """Cells in training: arrays of their models, keys, data sets, and a run for every start."""

    arrays: Any
    key: Array
    data: Prepared
    runs: RunState


def _work(
    models: Family,
    starts: tuple[StartFunction, ...],
    recipe: Recipe,
    rule: Rule,
    drawn_from: tuple[Array, str],
    sizes: Int[np.ndarray, " alphas"],
    size: int,
) -> SlotWork[tuple[int, ...]]:
    """Training of cells, by their indices in the grid, padded to `size` sentences.

    Their data sets are drawn from a root key and the name of the norm of the teacher.
    """

    def begin(indices: Sequence[tuple[int, ...]]) -> _Slots:
        index: Int[np.ndarray, "cells 3"] = np.asarray(indices)
        numbers, counts = (models.arrays, models.positions), sizes[index[:, 0]]
        return _begin(models.shared, starts, recipe, numbers, drawn_from, index, counts, size)

    def advance(slots: _Slots) -> tuple[_Slots, Bool[Array, " cells"]]:
        runs, finished = _advance(models.shared, recipe, slots)
        return slots._replace(runs=runs), finished

    return SlotWork(begin, advance, lambda slots: _finish(models.shared, recipe, rule, slots))


@eqx.filter_jit
def _begin(
    shared: Any,
    starts: tuple[StartFunction, ...],
    recipe: Recipe,
    numbers: tuple[Any, Float[Array, "members tokens d"]],
    drawn_from: tuple[Array, str],
    index: Int[Array | np.ndarray, "cells 3"],
    counts: Int[Array | np.ndarray, " cells"],
    size: int,
) -> _Slots:
    """Draw the data set of every cell from its index and its number of sentences."""
    root, teacher_norm = drawn_from
    arrays, positions = jax.tree.map(lambda leaf: leaf[index[:, 1]], numbers)

    def begin_cell(arrays: Any, positions: Array, n: Array, key: Array) -> _Slots:
        model = eqx.combine(arrays, shared)
        drawn = draw_dataset(model, size, key, positions, teacher_norm)
        data = prepare(model, drawn, n)
        start_key, teacher_weights = Purpose.START.of(key), drawn.teacher_weights
        weights = [
            initial_weights(model, start, start_key, teacher_weights, positions) for start in starts
        ]

        def begin_run(weights: Weights) -> RunState:
            return initialize_training(model, data.reduced, recipe, key, weights)

        return _Slots(arrays, key, data, jax.vmap(begin_run)(jnp.stack(weights)))

    return vmap_runs(begin_cell)(arrays, positions, counts, keys_at(root, jnp.asarray(index)))


@eqx.filter_jit
def _advance(shared: Any, recipe: Recipe, slots: _Slots) -> tuple[RunState, Bool[Array, " cells"]]:
    """Advance every run by some steps; a cell has finished when all its runs have."""

    def advance_cell(
        arrays: Any, key: Array, data: Prepared, runs: RunState
    ) -> tuple[RunState, Array]:
        model = eqx.combine(arrays, shared)

        def advance_run(state: RunState) -> RunState:
            return optimize(model, data.reduced, recipe, key, state, state.steps + STEPS_PER_CALL)

        runs = jax.vmap(advance_run)(runs)
        return runs, jnp.all(runs.outcome != Outcome.RUNNING)

    return vmap_runs(advance_cell)(*slots)


@eqx.filter_jit
def _finish(shared: Any, recipe: Recipe, rule: Rule, slots: _Slots) -> dict[str, Array]:
    """Measure the students of every cell; results have axes (cell, start)."""

    def finish_cell(arrays: Any, key: Array, data: Prepared, runs: RunState) -> dict[str, Array]:
        model = eqx.combine(arrays, shared)
        trained = jax.vmap(lambda state: finish(model, data, recipe, state))(runs)

        def test_error(weights: Weights) -> Array:
            return attention_error(model, weights, data.teacher_weights, data.positions, rule)

        # The points of the average take more memory than the weights: one start after the other.
        errors = jax.lax.map(test_error, trained.weights)
        return {"test_error": errors, **trained.numbers()}

    return vmap_runs(finish_cell)(*slots)
