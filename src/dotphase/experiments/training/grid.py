"""Training on a grid of alpha and of a parameter of the model, from several starts.

Cells (alpha, value, seed) are trained many at a time, in lanes of one compiled call; a cell that
has ended makes room for the next. Data are drawn where they are used. Data sets of different sizes
share compiled code by padding: unused sentences have weight zero. The starts of a cell share its
data, so that one pass over the tokens serves all of them and their training losses can be
compared without the noise of different data. Results are kept on the way, and a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.experiments.training.throughput import Throughput, speed_of_device
from dotphase.finite_d.batches import choose_runs_per_batch, on_cpu, run_bytes, vmap_runs
from dotphase.finite_d.continuous_batching import SlotWork, run_in_slots
from dotphase.finite_d.datasets import count_sentences, draw_dataset, position_vectors
from dotphase.finite_d.initialization import StartFunction, initial_weights, resolve_start
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.overlaps import mechanisms_of
from dotphase.finite_d.preparation import Prepared, prepare
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.finite_d.test_error import attention_error, quadrature
from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import Rule
from dotphase.runtime import memory_limit
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.paths import check_writable
from dotphase.storage.provenance import describe_model, provenance
from dotphase.storage.result_cache import CachedResult
from dotphase.training.kernel import Recipe, finish, initialize_training, optimize
from dotphase.training.loop import RunState
from dotphase.training.settings import TrainingSettings

#: Data sets are padded to the largest size, or to half of it, to share compiled code. The second
#: size is worth its compilation where the tokens of all cells take more bytes than this, on a
#: CPU and on an accelerator: padding is read too.
SECOND_SIZE = 2**32, 2**40
#: Most cells at once on a CPU.
CROWD = 16
#: Steps between two looks at which cells have ended.
ROUND = 8
#: Seconds between two times that results are written.
EVERY = 5.0

FIELDS = (
    "train_loss",
    "test_error",
    "m",
    "theta",
    "q",
    "semantic_alignment",
    "positional_alignment",
    "gradient_norm",
    "iterations",
    "outcome",
)


class Family(NamedTuple):
    """Models that differ in numbers only, stacked: one axis more on each of their arrays.

    Attributes
    ----------
    members : the models
    arrays, positions : their numbers, and their positional encodings
    rest : what they have in common
    """

    members: tuple[Model, ...]
    arrays: Any
    positions: Float[Array, "members tokens d"]
    rest: Any


@in_double_precision
def grid(
    family: Callable[[float], Model],
    alphas: Sequence[float],
    values: Sequence[float],
    d: int,
    *,
    parameter: str = "omega",
    starts: str | Sequence[str] = ("semantic", "positional"),
    seeds: int = 2,
    optimizer: str = "lbfgs",
    lr: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    runs_per_batch: int | None = None,
    out: str | Path | None = None,
    throughput: bool = False,
    progress: Callable[[int, int], None] | None = None,
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
        What the parameter is called in the result.
    starts : names of starts, or one name
        As in `train`; they share the data of a cell.
    seeds : int
        Data sets per cell.
    optimizer : str
        As in `train`, with the steps for runs of which only the end is looked at.
    lr, steps : float, int, optional
        Size of a step and most steps, if not these.
    seed : int
        Seed of everything random.
    runs_per_batch : int, optional
        Cells trained at once; chosen to fit into memory if not given.
    out : path, optional
        An .npz file that is rewritten every few seconds; cells found there are not computed
        again.
    throughput : bool
        Time single gradients and a plain copy as well, for the attributes of the result.
    progress : callable, optional
        Called with (cells done, cells in all).

    Returns
    -------
    xarray.Dataset
        Over alpha, the parameter, seed and start. Attributes hold the settings and the throughput.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> runs["train_loss"].dims
    ('alpha', 'omega', 'seed', 'start')
    """
    began = time.perf_counter()
    starts = (starts,) if isinstance(starts, str) else starts
    places = [float(value) for value in values]
    models = stack([family(value) for value in places], parameter, d)
    model = models.members[0]
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    seeds = validation.integer("seeds", seeds, at_least=1)
    settings = TrainingSettings(
        optimizer, steps, lr, seed=seed, runs_per_batch=runs_per_batch
    ).for_endpoint()
    for member in models.members:
        chosen = tuple(resolve_start(member, start) for start in starts)
    cells = _Grid(
        coords={
            "alpha": [float(alpha) for alpha in alphas],
            parameter: places,
            "seed": list(range(seeds)),
            "start": list(starts),
        },
        asked={"d": d, "seed": seed, "optimizer": optimizer, "lr": lr, "steps": steps},
        models=models,
        path=None if out is None else check_writable("out", out, (".npz",)),
    )
    rule, recipe = quadrature(model), settings.recipe(d)
    root = jax.random.key(seed)
    padded = _padded(sizes, model.length * d * 8 * cells.done[0].size)
    useful, trained = 0.0, 0
    for size in sorted(set(padded), reverse=True):
        todo = [place for place in np.ndindex(cells.done.shape)
                if padded[place[0]] == size and not cells.done[place]]  # fmt: skip
        each = run_bytes(model, size, d, np.dtype("float64"))
        lanes = choose_runs_per_batch(runs_per_batch, each, len(todo), d, cpu_limit=CROWD)
        work = _work(models, chosen, recipe, rule, root, np.asarray(sizes), size)

        def receive(indices: list[tuple[int, ...]], results: dict[str, np.ndarray]) -> None:
            nonlocal useful, trained
            cells.add(indices, results)
            steps = results["iterations"].sum(axis=1)
            sentences = np.asarray([sizes[i] for i, _, _ in indices])
            useful += float(np.sum(steps * sentences)) * 2 * model.length * d * 8
            trained += len(indices) * len(starts)
            if progress is not None:
                progress(int(cells.done.sum()), cells.done.size)

        with memory_limit.explain_out_of_memory(lanes), cells.keeping():
            run_in_slots(work, todo, lanes, receive)
    seconds = time.perf_counter() - began
    rates = speed_of_device(model, d, max(sizes), runs_per_batch) if throughput else {}
    return cells.dataset(Throughput(trained, seconds, useful, **rates))


def _padded(sizes: Sequence[int], each: int) -> list[int]:
    """Sizes that data sets of the given sizes are padded to; a sentence of each takes so many
    bytes in all."""
    worth = SECOND_SIZE[0 if on_cpu() else 1]
    quantum = -(-max(sizes) // (2 if sum(sizes) * each > worth else 1))
    return [-(-n // quantum) * quantum for n in sizes]


def stack(members: Sequence[Model], parameter: str, d: int) -> Family:
    """Put models on one axis; they must agree in everything but numbers."""
    if not members:
        raise InvalidInput("values", members, "must be one or more numbers")
    parts = [eqx.partition(member, eqx.is_array_like) for member in members]
    shapes = [[np.shape(leaf) for leaf in jax.tree.leaves(arrays)] for arrays, _ in parts]
    for (_, rest), shape in zip(parts, shapes, strict=True):
        if shape != shapes[0] or not eqx.tree_equal(rest, parts[0][1]):
            rule = "must give models of the same functions and shapes: only numbers may differ"
            raise InvalidInput("family", f"models by {parameter}", rule)
    arrays = [arrays for arrays, _ in parts]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *arrays)
    positions = jnp.stack([jnp.asarray(position_vectors(member, d)) for member in members])
    return Family(tuple(members), stacked, positions, parts[0][1])


class _Lane(NamedTuple):
    """A cell in training: numbers of its model, key, data, and a run for every start."""

    arrays: Any
    key: Array
    data: Prepared
    runs: RunState


def _work(
    models: Family,
    starts: tuple[StartFunction, ...],
    recipe: Recipe,
    rule: Rule,
    root: Array,
    sizes: Int[np.ndarray, " alphas"],
    size: int,
) -> SlotWork[tuple[int, ...]]:
    """Training of cells (number of alpha, of the value, seed), padded to `size` sentences."""

    def begin(places: Sequence[tuple[int, ...]]) -> _Lane:
        index: Int[np.ndarray, "cells 3"] = np.asarray(places)
        numbers, counts = (models.arrays, models.positions), sizes[index[:, 0]]
        return _begin(models.rest, starts, recipe, numbers, root, index, counts, size)

    def advance(lanes: _Lane) -> tuple[_Lane, Bool[Array, " cells"]]:
        runs, finished = _advance(models.rest, recipe, lanes)
        return lanes._replace(runs=runs), finished

    return SlotWork(begin, advance, lambda lanes: _finish(models.rest, recipe, rule, lanes))


@eqx.filter_jit
def _begin(
    rest: Any,
    starts: tuple[StartFunction, ...],
    recipe: Recipe,
    numbers: tuple[Any, Float[Array, "members tokens d"]],
    root: Array,
    index: Int[Array | np.ndarray, "cells 3"],
    counts: Int[Array | np.ndarray, " cells"],
    size: int,
) -> _Lane:
    """Draw the data of every cell, given by its place in the grid and its number of sentences."""
    arrays, positions = jax.tree.map(lambda leaf: leaf[index[:, 1]], numbers)

    def one(arrays: Any, positions: Array, n: Array, key: Array) -> _Lane:
        model = eqx.combine(arrays, rest)
        drawn = draw_dataset(model, size, key, positions)
        data = prepare(model, drawn, n)
        for_start, teacher_weights = Purpose.START.of(key), drawn.teacher_weights
        first = [
            initial_weights(model, start, for_start, teacher_weights, positions) for start in starts
        ]

        def launched(weights: Weights) -> RunState:
            return initialize_training(model, data.reduced, recipe, key, weights)

        return _Lane(arrays, key, data, jax.vmap(launched)(jnp.stack(first)))

    return vmap_runs(one)(arrays, positions, counts, keys_at(root, jnp.asarray(index)))


@eqx.filter_jit
def _advance(rest: Any, recipe: Recipe, lanes: _Lane) -> tuple[RunState, Bool[Array, " cells"]]:
    """Some steps of every run; a cell has finished when all its runs have."""

    def one(arrays: Any, key: Array, data: Prepared, runs: RunState) -> tuple[RunState, Array]:
        model = eqx.combine(arrays, rest)

        def go_on(now: RunState) -> RunState:
            return optimize(model, data.reduced, recipe, key, now, now.steps + ROUND)

        runs = jax.vmap(go_on)(runs)
        return runs, jnp.all(runs.outcome != Outcome.RUNNING)

    return vmap_runs(one)(*lanes)


@eqx.filter_jit
def _finish(rest: Any, recipe: Recipe, rule: Rule, lanes: _Lane) -> dict[str, Array]:
    """What is reported of every cell, with axes (cell, start)."""

    def one(arrays: Any, key: Array, data: Prepared, runs: RunState) -> dict[str, Array]:
        model = eqx.combine(arrays, rest)
        trained = jax.vmap(lambda end: finish(model, data, recipe, end))(runs)

        def test_error(weights: Weights) -> Array:
            return attention_error(model, weights, data.teacher_weights, data.positions, rule)

        # One start at a time: the points of the average take more room than the weights.
        errors = jax.lax.map(test_error, trained.weights)
        return {"test_error": errors, **trained.numbers()}

    return vmap_runs(one)(*lanes)


@dataclass
class _Grid:
    """Results so far, in memory and, where there is a path, in a file."""

    coords: dict[str, list[Any]]
    asked: dict[str, Any]
    models: Family
    path: Path | None
    done: np.ndarray = field(init=False)
    values: dict[str, np.ndarray] = field(init=False)
    written: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        shape = tuple(len(values) for values in self.coords.values())
        self.done = np.zeros(shape[:3], bool)
        self.values = {name: np.full(shape, np.nan) for name in FIELDS}
        stored = None if self.path is None else self._file(self.path).arrays()
        if stored is not None:
            self.done = stored["done"]
            self.values = {name: stored[name] for name in FIELDS}

    def _file(self, path: Path) -> CachedResult:
        described = [describe_model(member) for member in self.models.members]
        return CachedResult(path, {**self.asked, **self.coords, "models": described})

    def add(self, places: Sequence[tuple[int, ...]], result: dict[str, np.ndarray]) -> None:
        """Results of some cells, in memory; in the file when it was written long ago."""
        for lane, place in enumerate(places):
            for name in FIELDS:
                self.values[name][place] = result[name][lane]
            self.done[place] = True
        if time.monotonic() - self.written > EVERY:
            self._write()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Write the file at the end of the work inside, also where it is interrupted."""
        try:
            yield
        finally:
            self._write()

    def _write(self) -> None:
        if self.path is not None:
            self._file(self.path).store_arrays({"done": self.done, **self.values})
        self.written = time.monotonic()

    def dataset(self, speed: Throughput) -> xr.Dataset:
        axes = tuple(self.coords)
        parameter = axes[1]
        variables: dict[str, Any] = {name: (axes, value) for name, value in self.values.items()}
        converged = self.values["outcome"] == Outcome.CONVERGED
        converged &= np.isfinite(self.values["test_error"])
        variables["converged"] = (axes, converged.astype(np.int8))
        variables["mechanism"] = (axes, mechanisms_of(self.values, self.asked["d"]))
        linear = [linear_test_error(member) for member in self.models.members]
        variables["linear_test_error"] = (parameter, np.asarray(linear))
        # What differs between the models has no place among the attributes.
        told = [provenance(member, **self.asked) for member in self.models.members]
        common = {name: part for name, part in told[0].items()
                  if all(other[name] == part for other in told)}  # fmt: skip
        return xr.Dataset(
            variables,
            coords={**self.coords, "seed": np.asarray(self.coords["seed"], np.int32)},
            attrs=common | {"parameter": parameter} | speed._asdict(),
        )
