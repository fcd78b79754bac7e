"""Which minimum an optimizer finds from random starts, by sample complexity and initial scale.

A cell is (alpha, seed): one data set, on which every optimizer starts from the same random
direction at every scale, so that maps differ by what they are about and not by their data. Data
sets of all alphas are padded to one size and each optimizer is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.finite_d.batches import choose_runs_per_batch, run_bytes, split_batches, vmap_runs
from dotphase.finite_d.datasets import count_sentences, draw_dataset, position_vectors
from dotphase.finite_d.initialization import StartFunction, initial_weights, resolve_start
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.overlaps import MECHANISMS, mechanisms_of
from dotphase.finite_d.preparation import Prepared, prepare
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.provenance import provenance
from dotphase.training.kernel import Recipe, train_starts
from dotphase.training.settings import TrainingSettings

#: Gradient norm over sqrt(d) at which a run has arrived, and sentences of a mini-batch.
TOLERANCE, MINIBATCH = 1e-5, 32

_NUMBERS = {
    "train_loss": "training loss per dimension where the run ended",
    "m": "|Q^T p_1|/sqrt d",
    "theta": "|Q^T Sigma_1 Q*|/d",
    "q": "|Q^T Sigma_1 Q|/d",
    "semantic_alignment": "|Q^T Q*|/(|Q| |Q*|)",
    "positional_alignment": "m/sqrt(m^2 + q)",
    "gradient_norm": "norm of the gradient of the training loss",
    "iterations": "steps taken",
    "outcome": "why the run stopped, a number of dotphase.numerics.outcome.Outcome",
}


@in_double_precision
def basins(
    model: Model,
    alphas: Sequence[float],
    scales: Sequence[float],
    d: int,
    *,
    optimizers: Sequence[str] = ("gd", "adam", "sgd"),
    seeds: int = 16,
    start: str = "random",
    lr: Mapping[str, float] | None = None,
    steps: Mapping[str, int] | None = None,
    minibatch: int = MINIBATCH,
    seed: int = 0,
    runs_per_batch: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Train students from random starts on a grid of alpha and initial scale.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sentences per dimension.
    scales : sequence of float
        Factors s of the weights at the start: for the random one, which has entries of variance
        one, standard deviations.
    d : int
        Dimension of a token.
    optimizers : names of optimizers
        As in `train`; all of them start from the same weights on the same data.
    seeds : int
        Data sets, each with its own random direction, per alpha.
    start : str
        Direction to start in, as in `train`.
    lr, steps : mappings, optional
        Step size and most steps of optimizers that are not to have their own for runs of which
        only the end is looked at.
    minibatch : int
        Sentences in a mini-batch of sgd.
    seed : int
        Seed of everything random.
    runs_per_batch : int, optional
        Cells trained at once; chosen to fit into memory if not given.
    progress : callable, optional
        Called with (batches done, batches in all).

    Returns
    -------
    xarray.Dataset
        Over optimizer, alpha, seed and scale, with the `mechanism` of every run.

    Examples
    --------
    >>> runs = dp.basins(dp.positional_semantic(), [2.0], [1.0], d=40, seeds=2, optimizers=["gd"])
    >>> runs["mechanism"].dims
    ('optimizer', 'alpha', 'seed', 'scale')
    """
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    widths = [validation.number("scale", scale, above=0) for scale in scales]
    common = TrainingSettings(
        tolerance=TOLERANCE, minibatch=minibatch, seed=seed, runs_per_batch=runs_per_batch
    )
    settings = {
        name: replace(
            common, optimizer=name, steps=(steps or {}).get(name), lr=(lr or {}).get(name)
        ).for_endpoint()
        for name in optimizers
    }
    for what, given in (("alphas", sizes), ("scales", widths), ("optimizers", optimizers)):
        if not given or len(set(given)) != len(given):  # type: ignore[arg-type]
            raise InvalidInput(what, given, "must be one or more different values")
    seeds = validation.integer("seeds", seeds, at_least=1)
    direction = resolve_start(model, start, 1.0)
    each = run_bytes(model, max(sizes), d, np.dtype("float64"))
    lanes = choose_runs_per_batch(runs_per_batch, each, len(sizes) * seeds, d)
    memory_limit.check_storage("seeds", seeds, 100 * len(sizes) * len(widths) * len(settings))
    places = [(i, k) for i in range(len(sizes)) for k in range(seeds)]
    root, positions = jax.random.key(seed), jnp.asarray(position_vectors(model, d))
    shape = (len(settings), len(sizes), seeds, len(widths))
    values = {name: np.full(shape, np.nan) for name in _NUMBERS}
    for done, (some, filled) in enumerate(split_batches(places, lanes)):
        index = np.asarray(filled)
        keys, counts = keys_at(root, jnp.asarray(index)), jnp.asarray(sizes)[index[:, 0]]
        with memory_limit.explain_out_of_memory(lanes):
            cells = _prepare(model, direction, keys, counts, positions, max(sizes))
            for number, chosen in enumerate(settings.values()):
                interrupt.check()
                recipe = chosen.recipe(d)
                found = _train(model, recipe, cells, jnp.asarray(widths))
                for name in _NUMBERS:
                    rows = np.asarray(found[name])
                    for lane, (i, k) in enumerate(some):
                        values[name][number, i, k] = rows[lane]
        if progress is not None:
            progress(done + 1, -(-len(places) // lanes))
    asked = {
        "d": d, "seed": seed, "minibatch": minibatch, "start": start,
        "lr": [chosen.step_size for chosen in settings.values()],
        "steps": [chosen.max_steps for chosen in settings.values()],
    }  # fmt: skip
    dataset = xr.Dataset(
        coords={"optimizer": list(settings), "alpha": [float(a) for a in alphas], "scale": widths},
        attrs=provenance(model, **asked),
    )
    axes = ("optimizer", "alpha", "seed", "scale")
    for name, text in _NUMBERS.items():
        dataset[name] = (axes, values[name], {"description": text})
    # A run that ran away has found nothing.
    diverged = np.isin(values["outcome"], (Outcome.DIVERGED, Outcome.NOT_FINITE))
    kinds = np.where(diverged, "diverged", mechanisms_of(values, d))
    dataset["mechanism"] = (axes, kinds, {"description": "what the student has learned"})
    return dataset


class _Cells(NamedTuple):
    """Data sets with a direction to start in and randomness for mini-batches, cells first."""

    data: Prepared
    direction: Float[Weights, " cells"]
    key: Array


@eqx.filter_jit
def _prepare(
    model: Model,
    start: StartFunction,
    keys: Array,
    sizes: Int[Array, " cells"],
    positions: Float[Array, "tokens d"],
    size: int,
) -> _Cells:
    def one(key: Array, n: Array) -> _Cells:
        drawn = draw_dataset(model, size, key, positions)
        for_start, for_steps = jax.random.split(Purpose.START.of(key))
        direction = initial_weights(model, start, for_start, drawn.teacher_weights, positions)
        return _Cells(prepare(model, drawn, n), direction, for_steps)

    return vmap_runs(one)(keys, sizes)


@eqx.filter_jit
def _train(
    model: Model, recipe: Recipe, cells: _Cells, scales: Float[Array, " scales"]
) -> dict[str, Array]:
    """Train every cell from every scale; results have axes (cell, scale)."""

    def cell(mine: _Cells) -> dict[str, Array]:
        first = scales[:, None, None] * mine.direction
        return train_starts(model, mine.data, recipe, mine.key, first).numbers()

    return vmap_runs(cell)(cells)


def basin_shares(dataset: xr.Dataset) -> xr.Dataset:
    """Shares of the runs that found each mechanism, with their errors.

    The error is the standard deviation of the posterior of a share with a flat prior,
    the root of ``p (1 - p)/(n + 3)`` with ``p = (k + 1)/(n + 2)``: the binomial one where there are
    many runs, and not zero where all of them agree.

    Examples
    --------
    >>> runs = dp.basins(dp.positional_semantic(), [2.0], [1.0], d=40, seeds=2, optimizers=["gd"])
    >>> dp.analysis.basin_shares(runs)["share"].dims
    ('found', 'optimizer', 'alpha', 'scale')
    """
    count = dataset.sizes["seed"]
    hits = xr.concat(
        [(dataset["mechanism"] == kind).sum("seed") for kind in MECHANISMS],
        xr.Variable("found", list(MECHANISMS)),
    )
    inner = (hits + 1) / (count + 2)
    error = np.sqrt(inner * (1 - inner) / (count + 3))
    return xr.Dataset({"share": hits / count, "stderr": error}, attrs=dataset.attrs)
