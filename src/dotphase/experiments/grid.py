"""The paper's experiment: training on a grid of alpha and omega, from several starts.

Cells (alpha, omega, seed) are trained many at a time in one compiled call. Data sets of
different sizes share it by padding: unused sentences have weight zero. The starts of a cell
share its data, so that one pass over the tokens serves all of them and their training
losses can be compared without the noise of different data. Results are kept after every
batch, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from dotphase._numerics import validate
from dotphase._numerics.outcome import Outcome
from dotphase._numerics.precision import in_double_precision
from dotphase._numerics.quadrature import Rule
from dotphase.errors import InvalidInput
from dotphase.experiments.family import named_model
from dotphase.finite import loss as reduced
from dotphase.finite import memory
from dotphase.finite.data import Dataset, count_sentences, draw, position_vectors, weighted_product
from dotphase.finite.linear import linear_test_error
from dotphase.finite.starts import begin, resolve
from dotphase.finite.test_error import attention_error, quadrature
from dotphase.model import Model
from dotphase.model.spectrum import Spectrum
from dotphase.storage.provenance import provenance
from dotphase.training.batch import objective
from dotphase.training.optimisers import OPTIMISERS, Progress, Settings, advance, launch
from dotphase.training.run import COPIES, SHARE, TOLERANCE

#: Data sets are padded to a multiple of the largest size over this many, to share compiled code.
SIZES = 2
#: Most steps of L-BFGS for a cell.
STEPS = 1000
#: Most cells in a batch.
MOST = 256
#: On a CPU: bytes that a batch may take, and most cells in it.
CACHE, CROWD = 2**25, 16

#: Settings that become attributes of the dataset.
KEPT = ("d", "sigma", "ridge", "student_rank", "length", "kinds", "untied", "seed")

FIELDS = (
    "train_loss",
    "test_error",
    "m",
    "theta",
    "q",
    "gradient_norm",
    "iterations",
    "outcome",
)


class Cells(NamedTuple):
    """A batch of cells.

    Attributes
    ----------
    omega : positional weight of the teacher
    n : sentences that count
    key : randomness of the data
    """

    omega: Float[Array, " cells"]
    n: Int[Array, " cells"]
    key: Array


class Throughput(NamedTuple):
    """How fast the grid was computed.

    Attributes
    ----------
    runs, seconds : runs trained in this call, and the time it took, compilation included
    useful_bytes : two passes over its own tokens for every step of every run
    evaluations_per_second : single gradients, batched as in training
    evaluation_bandwidth : bytes per second that these read from the token matrices
    copy_bandwidth : bytes per second of a plain copy on the same device, reads and writes

    The last three are NaN where they were not asked for.
    """

    runs: int
    seconds: float
    useful_bytes: float
    evaluations_per_second: float
    evaluation_bandwidth: float
    copy_bandwidth: float


@in_double_precision
def experiment(
    alphas: Sequence[float],
    omegas: Sequence[float],
    d: int,
    *,
    starts: Sequence[str] = ("semantic", "positional"),
    seeds: int = 2,
    sigma: float = 0.5,
    ridge: float = 0.01,
    mixing: Any = "standard",
    student_rank: int = 1,
    length: int = 2,
    kinds: int = 2,
    untied: bool = False,
    spectrum: Spectrum | None = None,
    seed: int = 0,
    batch: int | None = None,
    out: str | Path | None = None,
    throughput: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Train the paper's model, or a relative of it, on a grid.

    Parameters
    ----------
    alphas, omegas : sequences of float
        Sentences per dimension, and positional weights of the teacher.
    d : int
        Dimension of a token.
    starts : names of starts
        As in `train`; they share the data of a cell.
    seeds : int
        Data sets per cell.
    sigma, ridge, mixing, student_rank, length, kinds, untied, spectrum
        As in `dotphase.experiments.family.named_model`.
    seed : int
        Seed of everything random.
    batch : int, optional
        Cells trained at once; chosen to fit into memory if not given.
    out : path, optional
        An .npz file that is rewritten after every batch; cells found there are not
        computed again.
    throughput : bool
        Time single gradients and a plain copy as well, for the attributes of the result.
    progress : callable, optional
        Called with (cells done, cells in all).

    Returns
    -------
    xarray.Dataset
        Over alpha, omega, start and seed. Attributes hold the settings and the throughput.
    """
    began = time.perf_counter()
    model = named_model(0.0, sigma, ridge, mixing, student_rank, length, kinds, untied, spectrum)
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    weights = [validate.number("omega", omega, at_least=0, at_most=1) for omega in omegas]
    seeds = validate.whole("seeds", seeds, at_least=1)
    chosen = tuple(resolve(model, start) for start in starts)
    shape = (len(sizes), len(weights), seeds)
    settings = {
        "d": d, "alphas": [float(a) for a in alphas], "omegas": weights, "starts": list(starts),
        "seeds": seeds, "sigma": float(sigma), "ridge": float(ridge), "seed": int(seed),
        "mixing": np.asarray(model.teacher.mixing).tolist(), "student_rank": model.student_rank,
        "length": model.length, "kinds": int(kinds), "untied": int(untied),
    }  # fmt: skip
    if spectrum is not None:
        settings["spectrum"] = [spectrum.values.tolist(), spectrum.weights.tolist()]
    kept = _Kept(None if out is None else Path(out), settings, shape, len(starts))

    positions = jnp.asarray(position_vectors(model, d))
    rule = quadrature(model)
    root = jax.random.key(validate.whole("seed", seed, at_least=0))
    quantum = -(-max(sizes) // SIZES)
    padded = [-(-n // quantum) * quantum for n in sizes]
    total, useful, trained = int(np.prod(shape)), 0.0, 0
    for size in sorted(set(padded), reverse=True):
        each = COPIES * size * model.length * d * 8
        todo = [
            index
            for index in np.ndindex(shape)
            if padded[index[0]] == size and not kept.done[index]
        ]
        lanes = _choose(batch, each, len(todo), d)
        for first in range(0, len(todo), lanes):
            some = todo[first : first + lanes]
            # Filled up with copies of the last cell, so that nothing is compiled again.
            filled = some + [some[-1]] * (lanes - len(some))
            cells = Cells(
                jnp.asarray([weights[j] for _, j, _ in filled]),
                jnp.asarray([sizes[i] for i, _, _ in filled]),
                _cell_keys(root, jnp.asarray(filled)),
            )
            with memory.explained(lanes):
                found = _train_cells(model, chosen, cells, positions, rule, size)
                result = {name: np.asarray(value) for name, value in found.items()}
            kept.store(some, result)
            steps = result["iterations"][: len(some)].sum(axis=1)
            counted = np.asarray([sizes[i] for i, _, _ in some])
            useful += float(np.sum(steps * counted)) * 2 * model.length * d * 8
            trained += len(some) * len(starts)
            if progress is not None:
                progress(int(kept.done.sum()), total)
    seconds = time.perf_counter() - began
    rates = _speed(model, d, max(sizes), batch) if throughput else (np.nan,) * 3
    speed = Throughput(trained, seconds, useful, *rates)
    return kept.dataset(speed, linear=[linear_test_error(_at(model, omega)) for omega in weights])


def _at(model: Model, omega: Any) -> Model:
    """The same model with a teacher of another omega."""
    return eqx.tree_at(lambda some: some.teacher.omega, model, omega)


def _choose(batch: int | None, each: int, count: int, d: int) -> int:
    room = memory.available()
    if batch is not None:
        batch = validate.whole("batch", batch, at_least=1)
        memory.check_batch(min(batch, max(count, 1)), each, room, d)
        return min(batch, max(count, 1))
    memory.check_batch(1, each, room, d)
    if jax.devices()[0].platform == "cpu":
        # All wait for the slowest, and share the memory bus: worth it for small data sets only.
        return int(np.clip(CACHE // each, 1, CROWD))
    return int(np.clip(SHARE * room // each, 1, min(MOST, max(count, 1))))


@eqx.filter_jit
def _cell_keys(root: Array, index: Int[Array, "cells 3"]) -> Array:
    """A key for every (alpha, omega, seed): neighbours do not share their noise."""

    def one(numbers: Array) -> Array:
        key = root
        for k in range(3):
            key = jax.random.fold_in(key, numbers[k])
        return key

    return jax.vmap(one)(index)


@eqx.filter_jit
def _train_cells(
    model: Model,
    starts: tuple[Any, ...],
    cells: Cells,
    positions: Float[Array, "tokens d"],
    rule: Rule,
    size: int,
) -> dict[str, Array]:
    """Train every cell from every start; results have axes (cell, start)."""
    d = positions.shape[1]
    tolerance = TOLERANCE["float64"] * np.sqrt(d)

    def cell(omega: Array, n: Array, key: Array) -> dict[str, Array]:
        mine = _at(model, omega)
        data = draw(mine, size, key, positions)
        used = (jnp.arange(size) < n).astype(positions.dtype)
        some = reduced.reduce(mine, data)._replace(used=used)
        first = jnp.stack([_begin(mine, start, key, data) for start in starts])
        settings = Settings(jnp.ones(()), jnp.asarray(STEPS), jnp.asarray(tolerance), key)

        def one(weights: Array) -> Progress:
            method = OPTIMISERS["lbfgs"].build(objective(mine, some, 1), settings)
            return advance(method, settings, launch(method, settings, weights), settings.steps)

        end = jax.vmap(one)(first)
        weights = end.point.weights

        def norms(q: Array) -> dict[str, Array]:
            return {
                "m": jnp.linalg.norm(q.T @ positions[0]) / np.sqrt(d),
                "theta": jnp.linalg.norm(weighted_product(mine, q, data.teacher_weights)),
                "q": jnp.linalg.norm(weighted_product(mine, q, q)),
                "test_error": attention_error(mine, q, data.teacher_weights, positions, rule),
            }

        return {
            "train_loss": end.point.value / d,
            "gradient_norm": jnp.linalg.norm(end.point.gradient, axis=(1, 2)),
            "iterations": end.taken,
            "outcome": end.outcome,
            **jax.lax.map(norms, weights),
        }

    return jax.vmap(cell)(*cells)


def _begin(model: Model, start: Any, key: Array, data: Dataset) -> Array:
    return begin(model, start, jax.random.fold_in(key, 101), data.teacher_weights, data.positions)


class _Kept:
    """Results so far, in memory and in a file that is replaced as a whole."""

    def __init__(
        self, path: Path | None, settings: dict[str, Any], shape: tuple[int, ...], starts: int
    ) -> None:
        self.path, self.settings = path, settings
        self.done = np.zeros(shape, bool)
        self.values = {name: np.full((*shape, starts), np.nan) for name in FIELDS}
        if path is None:
            return
        if path.suffix != ".npz":
            raise InvalidInput("out", str(path), "must be the name of an .npz file")
        if path.exists():
            with np.load(path) as stored:
                if json.loads(str(stored["settings"])) != settings:
                    raise InvalidInput(
                        "out", str(path), "holds results of other settings: use another file"
                    )
                self.done = stored["done"].copy()
                self.values = {name: stored[name].copy() for name in FIELDS}

    def store(self, cells: Sequence[tuple[int, ...]], result: dict[str, np.ndarray]) -> None:
        for lane, index in enumerate(cells):
            for name in FIELDS:
                self.values[name][index] = result[name][lane]
            self.done[index] = True
        if self.path is None:
            return
        part = self.path.with_name(self.path.name + ".part")
        with part.open("wb") as file:
            arrays: dict[str, Any] = {"done": self.done, **self.values}
            np.savez(file, settings=json.dumps(self.settings), **arrays)
        os.replace(part, self.path)

    def dataset(self, speed: Throughput, linear: list[float]) -> xr.Dataset:
        axes = ("alpha", "omega", "seed", "start")
        variables: dict[str, Any] = {name: (axes, value) for name, value in self.values.items()}
        converged = self.values["outcome"] == Outcome.CONVERGED
        variables["converged"] = (axes, converged.astype(np.int8))
        variables["linear_test_error"] = ("omega", np.asarray(linear))
        return xr.Dataset(
            variables,
            coords={
                "alpha": self.settings["alphas"],
                "omega": self.settings["omegas"],
                "seed": np.arange(self.done.shape[2], dtype=np.int32),
                "start": self.settings["starts"],
            },
            attrs=provenance(**{name: self.settings[name] for name in KEPT}) | speed._asdict(),
        )


def _speed(model: Model, d: int, n: int, batch: int | None) -> tuple[float, float, float]:
    """Gradients per second, the bandwidth they read tokens with, and that of a plain copy."""
    # Enough to outlast the start of a kernel, on a GPU too.
    total = 2**28 if jax.devices()[0].platform == "cpu" else 2**32
    lanes = batch or int(np.clip(total // (n * model.length * d * 8), 1, MOST))
    z = jnp.ones((lanes, n, model.length, d))
    small = jnp.ones((lanes, model.length, model.length, n))
    form = reduced.Form(small, small, jnp.ones((lanes, n)))
    some = reduced.Reduced(z, form, jnp.ones((lanes, n)))
    weights = jnp.full((lanes, d, model.student_rank), 0.1)
    gradient = _best_time(_gradients, model, some, weights)
    copy = _best_time(_copy, z)
    return lanes / gradient, 2 * z.nbytes / gradient, 2 * z.nbytes / copy


def _best_time(function: Callable[..., Any], *arguments: Any) -> float:
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


@eqx.filter_jit
def _gradients(model: Model, some: reduced.Reduced, weights: Array) -> Any:
    return jax.vmap(lambda each, q: reduced.value_and_gradient(model, each, q))(some, weights)


@eqx.filter_jit
def _copy(z: Array) -> Array:
    return z + 1.0
