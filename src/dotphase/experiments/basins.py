"""Which minimum an optimiser finds from random starts, by sample complexity and initial scale.

A cell is (alpha, seed): one data set, on which every optimiser starts from the same random
direction at every scale, so that maps differ by what they are about and not by their data. Data
sets of all alphas are padded to one size and each optimiser is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from dotphase.errors import InvalidInput
from dotphase.finite import loss as reduced
from dotphase.finite import memory
from dotphase.finite.data import count_sentences, draw, position_vectors
from dotphase.finite.loss import Reduced
from dotphase.finite.starts import resolve
from dotphase.model import Model
from dotphase.model.paper import positional_semantic
from dotphase.storage.provenance import provenance
from dotphase.training.batch import objective, over_runs
from dotphase.training.optimisers import OPTIMISERS, Progress, Settings, advance, launch
from dotphase.training.result import mechanism_of
from dotphase.training.run import COPIES, SHARE

#: Step sizes and most steps. Larger steps than the paper's: only the end is looked at.
LR = {"gd": 1.0, "adam": 0.03, "sgd": 0.3, "lbfgs": 1.0}
STEPS = {"gd": 3000, "adam": 1500, "sgd": 6000, "lbfgs": 1000}
#: Gradient norm over sqrt(d) at which a run has arrived, and sentences of a mini-batch.
TOLERANCE, MINIBATCH = 1e-5, 32
#: What can be found.
MECHANISMS = ("semantic", "positional", "mixed", "uninformed")
#: Most cells at once; on a CPU one, since more wait for the slowest.
MOST = 256

_NUMBERS = {
    "train_loss": "training loss per dimension where the run ended",
    "m": "|Q^T p_1|/sqrt d",
    "theta": "sigma_1^2 |Q^T Q*|/d",
    "q": "sigma_1^2 |Q^T Q|/d",
    "semantic_alignment": "|Q^T Q*|/(|Q| |Q*|)",
    "positional_alignment": "m/sqrt(m^2 + q)",
    "gradient_norm": "norm of the gradient of the training loss",
    "iterations": "steps taken",
    "outcome": "why the run stopped, as in dotphase.training.optimisers.Outcome",
}


@in_double_precision
def basins(
    alphas: Sequence[float],
    scales: Sequence[float],
    d: int,
    *,
    optimizers: Sequence[str] = ("gd", "adam", "sgd"),
    seeds: int = 16,
    omega: float = 0.3,
    sigma: float = 0.5,
    ridge: float = 0.01,
    mixing: Any = "standard",
    lr: Mapping[str, float] | None = None,
    steps: Mapping[str, int] | None = None,
    minibatch: int = MINIBATCH,
    seed: int = 0,
    batch: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Train the paper's student from random starts on a grid of alpha and initial scale.

    Parameters
    ----------
    alphas : sequence of float
        Sentences per dimension.
    scales : sequence of float
        Standard deviations s of the entries of Q at the start.
    d : int
        Dimension of a token.
    optimizers : names of optimisers
        As in `train`; all of them start from the same weights on the same data.
    seeds : int
        Data sets, each with its own random direction, per alpha.
    omega, sigma, ridge, mixing
        As in `positional_semantic`.
    lr, steps : mappings, optional
        Step size and most steps of optimisers that are not to have those of this module.
    minibatch : int
        Sentences in a mini-batch of sgd.
    seed : int
        Seed of everything random.
    batch : int, optional
        Cells trained at once; chosen to fit into memory if not given.
    progress : callable, optional
        Called with (batches done, batches in all).

    Returns
    -------
    xarray.Dataset
        Over optimizer, alpha, seed and scale, with the `mechanism` of every run.
    """
    model = positional_semantic(omega, sigma, ridge, mixing)
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    widths = [validate.number("scale", scale, above=0) for scale in scales]
    names = [validate.choice("optimizer", name, OPTIMISERS) for name in optimizers]
    for field, given in (("alphas", sizes), ("scales", widths), ("optimizers", names)):
        if not given or len(set(given)) != len(given):  # type: ignore[arg-type]
            raise InvalidInput(field, given, "must be one or more different values")
    seeds = validate.whole("seeds", seeds, at_least=1)
    minibatch = validate.whole("minibatch", minibatch, at_least=1)
    rates, limits = LR | dict(lr or {}), STEPS | dict(steps or {})
    root = jax.random.key(validate.whole("seed", seed, at_least=0))
    positions = jnp.asarray(position_vectors(model, d))
    cells = [(i, k) for i in range(len(sizes)) for k in range(seeds)]
    lanes = _choose(batch, COPIES * max(sizes) * model.length * d * 8, len(cells), d)
    shape = (len(names), len(sizes), seeds, len(widths))
    values = {name: np.full(shape, np.nan) for name in _NUMBERS}
    batches = range(0, len(cells), lanes)
    for done, first in enumerate(batches):
        some = cells[first : first + lanes]
        # Filled up with copies of the last cell, so that nothing is compiled again.
        index = np.asarray(some + [some[-1]] * (lanes - len(some)))
        counts = jnp.asarray([sizes[i] for i, _ in index])
        with memory.explained(lanes):
            ready = _prepare(model, root, jnp.asarray(index), counts, positions, max(sizes))
            for number, name in enumerate(names):
                rate, limit = jnp.asarray(float(rates[name])), jnp.asarray(int(limits[name]))
                end = _train(model, name, minibatch, ready, jnp.asarray(widths), rate, limit)
                found = _measure(model, ready, end.point.weights, positions)
                found |= {"iterations": end.taken, "outcome": end.outcome}
                for part, array in found.items():
                    rows = np.asarray(array)
                    for lane, (i, k) in enumerate(some):
                        values[part][number, i, k] = rows[lane]
        if progress is not None:
            progress(done + 1, len(batches))
    asked = {
        "d": d, "omega": omega, "sigma": sigma, "ridge": ridge, "seed": seed,
        "minibatch": minibatch, "lr": [float(rates[name]) for name in names],
        "steps": [int(limits[name]) for name in names],
    }  # fmt: skip
    return _dataset(values, names, [float(alpha) for alpha in alphas], widths, d, asked)


def _choose(batch: int | None, each: int, count: int, d: int) -> int:
    room = memory.available()
    if batch is not None:
        batch = min(validate.whole("batch", batch, at_least=1), count)
        memory.check_batch(batch, each, room, d)
        return batch
    memory.check_batch(1, each, room, d)
    if jax.devices()[0].platform == "cpu":
        return 1
    return int(np.clip(SHARE * room // each, 1, min(MOST, count)))


class _Cells(NamedTuple):
    """Data sets with a direction to start in and randomness for mini-batches, cells first."""

    some: Reduced
    teacher: Float[Array, "cells d"]
    direction: Float[Array, "cells d 1"]
    key: Array


@eqx.filter_jit
def _prepare(
    model: Model,
    root: Array,
    index: Int[Array, "cells 2"],
    sizes: Int[Array, " cells"],
    positions: Float[Array, "tokens d"],
    size: int,
) -> _Cells:
    start = resolve(model, "random", 1.0)

    def one(place: Array, n: Array) -> _Cells:
        key = jax.random.fold_in(jax.random.fold_in(root, place[0]), place[1])
        data = draw(model, size, key, positions)
        used = (jnp.arange(size) < n).astype(positions.dtype)
        some = reduced.reduce(model, data)._replace(used=used)
        for_start, for_steps = jax.random.split(jax.random.fold_in(key, 101))
        direction = start(for_start, data.teacher_weights, positions)
        return _Cells(some, data.teacher_weights[:, 0], direction, for_steps)

    return over_runs(one)(index, sizes)


@eqx.filter_jit
def _train(
    model: Model,
    name: str,
    minibatch: int,
    cells: _Cells,
    scales: Float[Array, " scales"],
    lr: Float[Array, ""],
    steps: Int[Array, ""],
) -> Progress:
    """Train every cell from every scale; results have axes (cell, scale)."""
    d = cells.teacher.shape[1]
    tolerance = jnp.asarray(TOLERANCE * np.sqrt(d))

    def cell(mine: _Cells) -> Progress:
        settings = Settings(lr, steps, tolerance, mine.key)

        def one(scale: Array) -> Progress:
            method = OPTIMISERS[name].build(objective(model, mine.some, minibatch), settings)
            begun = launch(method, settings, scale * mine.direction)
            return advance(method, settings, begun, settings.steps)

        return jax.vmap(one)(scales)

    return over_runs(cell)(cells)


@eqx.filter_jit
def _measure(
    model: Model,
    cells: _Cells,
    weights: Float[Array, "cells scales d 1"],
    positions: Float[Array, "tokens d"],
) -> dict[str, Array]:
    d, rho, tiny = positions.shape[1], model.rho[0], np.finfo(np.float64).tiny

    def cell(mine: _Cells, found: Array) -> dict[str, Array]:
        value, gradient = jax.vmap(lambda q: reduced.value_and_gradient(model, mine.some, q))(found)
        rows = found[..., 0]
        length = jnp.linalg.norm(rows, axis=1)
        m = jnp.abs(rows @ positions[0]) / np.sqrt(d)
        q = rho * length**2 / d
        along = jnp.abs(rows @ mine.teacher)
        return {
            "train_loss": value / d,
            "m": m,
            "theta": rho * along / d,
            "q": q,
            "semantic_alignment": along / (length * jnp.linalg.norm(mine.teacher) + tiny),
            "positional_alignment": m / (jnp.sqrt(m**2 + q) + tiny),
            "gradient_norm": jnp.linalg.norm(gradient, axis=(1, 2)),
        }

    return over_runs(cell)(cells, weights)


def _dataset(
    values: dict[str, np.ndarray],
    names: list[str],
    alphas: list[float],
    scales: list[float],
    d: int,
    asked: dict[str, Any],
) -> xr.Dataset:
    axes = ("optimizer", "alpha", "seed", "scale")
    coords = {"optimizer": names, "alpha": alphas, "scale": scales}
    dataset = xr.Dataset(coords=coords, attrs=provenance(**asked))
    for name, text in _NUMBERS.items():
        dataset[name] = (axes, values[name], {"description": text})
    judge = np.vectorize(lambda s, p: mechanism_of(s, p, d), otypes=["U16"])
    kinds = judge(values["semantic_alignment"], values["positional_alignment"])
    # A run that ran away has found nothing.
    kinds = np.where(values["outcome"] == Outcome.DIVERGED, "diverged", kinds)
    dataset["mechanism"] = (axes, kinds, {"description": "what the student has learned"})
    return dataset


def basin_shares(dataset: xr.Dataset) -> xr.Dataset:
    """Shares of the runs that found each mechanism, with their errors.

    The error is the standard deviation of the posterior of a share with a flat prior,
    the root of ``p (1 - p)/(n + 3)`` with ``p = (k + 1)/(n + 2)``: the binomial one where there are
    many runs, and not zero where all of them agree.
    """
    count = dataset.sizes["seed"]
    hits = xr.concat(
        [(dataset["mechanism"] == kind).sum("seed") for kind in MECHANISMS],
        xr.Variable("found", list(MECHANISMS)),
    )
    inner = (hits + 1) / (count + 2)
    error = np.sqrt(inner * (1 - inner) / (count + 3))
    return xr.Dataset({"share": hits / count, "stderr": error}, attrs=dataset.attrs)
