"""Minima that optimizers reach from random starts, by sample complexity and initial scale.

A cell is (alpha, seed): one data set, on which every optimizer starts from the same random
direction at every scale, so that maps do not differ by their data. Data sets of all alphas are
padded to one size, and each optimizer is compiled once.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from dotphase.config import validation
from dotphase.config.settings import replace_fields
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
from dotphase.runtime.progress import Progress, ProgressCallback, ProgressEvent, reporter
from dotphase.storage.provenance import provenance
from dotphase.training.settings import TrainingFields, TrainingSettings
from dotphase.training.single_run import Recipe, train_starts

#: Default settings: coarse convergence, small mini-batches.
SETTINGS = TrainingSettings(tolerance=1e-5, minibatch=32)
#: Settings that all optimizers share.
SHARED = ("seed", "runs_per_batch", "teacher_norm")

_NUMBERS = {
    "train_loss": "training loss per dimension at the end",
    "m": "|Q^T p_1|/sqrt d",
    "theta": "|Q^T Sigma_1 Q*|/d",
    "q": "|Q^T Sigma_1 Q|/d",
    "semantic_alignment": "|Q^T Q*|/(|Q| |Q*|)",
    "positional_alignment": "m/sqrt(m^2 + q)",
    "gradient_norm": "norm of the gradient of the training loss",
    "iterations": "steps taken",
    "outcome": "reason of the stop, a number of dotphase.numerics.outcome.Outcome",
}


@in_double_precision
def basins(
    model: Model,
    alphas: Sequence[float],
    scales: Sequence[float],
    d: int,
    *,
    seeds: int = 16,
    start: str = "random",
    optimizers: Sequence[str | TrainingSettings] = ("gd", "adam", "sgd"),
    progress: Progress = None,
    settings: TrainingSettings | None = None,
    **changes: Unpack[TrainingFields],
) -> xr.Dataset:
    """Train students from random starts on a grid of alpha and initial scale.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sentences per dimension.
    scales : sequence of float
        Factors s of the initial weights. A random start has entries of standard deviation s.
    d : int
        Dimension of a token.
    seeds : int
        Data sets per alpha, each with its own random direction.
    start : str
        Direction of the initial weights, as in `train`.
    optimizers : sequence of str or TrainingSettings
        Names of optimizers, or settings for one that differ from `settings` (such as lr and
        steps). All of them start from the same weights on the same data.
    progress : bool or callable, optional
        Receives an event for each finished batch (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `train`, in double precision, with a tolerance of 1e-5 and mini-batches of 32 by
        default. By default steps are chosen for the final weights, not for the path.

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
    rules = _optimizer_settings(optimizers, settings or SETTINGS, changes)
    common = {name: value for name, value in changes.items() if name in SHARED}
    settings = replace_fields(settings or SETTINGS, common)
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    factors = [validation.number("scale", scale, above=0) for scale in scales]
    for name, chosen in (("alphas", sizes), ("scales", factors)):
        _check_different(name, chosen)
    seeds = validation.integer("seeds", seeds, at_least=1)
    memory_limit.check_storage("seeds", seeds, 100 * len(sizes) * len(factors) * len(rules))
    values = _train_cells(
        model, sizes, factors, d, seeds, resolve_start(model, start, 1.0), rules, settings,
        reporter(progress),
    )  # fmt: skip
    config = {
        "d": d, "start": start, "seed": settings.seed,
        "teacher_norm": settings.teacher_norm,
        "lr": [rule.step_size for rule in rules.values()],
        "steps": [rule.max_steps for rule in rules.values()],
        "minibatch": [rule.minibatch for rule in rules.values()],
    }  # fmt: skip
    dataset = xr.Dataset(
        coords={"optimizer": list(rules), "alpha": [float(a) for a in alphas], "scale": factors},
        attrs=provenance(model, **config),
    )
    axes = ("optimizer", "alpha", "seed", "scale")
    for name, text in _NUMBERS.items():
        dataset[name] = (axes, values[name], {"description": text})
    diverged = np.isin(values["outcome"], (Outcome.DIVERGED, Outcome.NOT_FINITE))
    kinds = np.where(diverged, "diverged", mechanisms_of(values, d))
    dataset["mechanism"] = (axes, kinds, {"description": "mechanism of the student"})
    return dataset


def _optimizer_settings(
    optimizers: Sequence[str | TrainingSettings],
    settings: TrainingSettings,
    changes: TrainingFields,
) -> dict[str, TrainingSettings]:
    """The settings of each optimizer, by its name."""
    if "optimizer" in changes:
        raise InvalidInput("optimizer", changes["optimizer"], "must be one of `optimizers`")
    rules = [
        replace_fields(settings, {**changes, "optimizer": optimizer})
        if isinstance(optimizer, str)
        else optimizer
        for optimizer in optimizers
    ]
    _check_different("optimizers", [rule.optimizer for rule in rules])
    return {rule.optimizer: rule.for_endpoint() for rule in rules}


def _check_different(field: str, values: Sequence[object]) -> None:
    if not values or len(set(values)) != len(values):
        raise InvalidInput(field, values, "must be one or more different values")


def _train_cells(
    model: Model,
    sizes: Sequence[int],
    factors: Sequence[float],
    d: int,
    seeds: int,
    direction: StartFunction,
    rules: Mapping[str, TrainingSettings],
    settings: TrainingSettings,
    report: ProgressCallback,
) -> dict[str, np.ndarray]:
    """Train all cells in batches; arrays are over optimizer, alpha, seed and scale."""
    indices = [(i, k) for i in range(len(sizes)) for k in range(seeds)]
    cell_bytes = run_bytes(model, max(sizes), d, np.dtype("float64"))
    n_cells = choose_runs_per_batch(settings.runs_per_batch, cell_bytes, len(indices), d)
    root, positions = jax.random.key(settings.seed), jnp.asarray(position_vectors(model, d))
    shape = (len(rules), len(sizes), seeds, len(factors))
    values = {name: np.full(shape, np.nan) for name in _NUMBERS}
    batches = -(-len(indices) // n_cells)
    for batch, (used, filled) in enumerate(split_batches(indices, n_cells)):
        index = np.asarray(filled)
        keys, counts = keys_at(root, jnp.asarray(index)), jnp.asarray(sizes)[index[:, 0]]
        with memory_limit.explain_out_of_memory(n_cells):
            cells = _prepare(
                model, direction, keys, counts, positions, max(sizes), settings.teacher_norm
            )
            for number, rule in enumerate(rules.values()):
                interrupt.check()
                trained = _train(model, rule.recipe(d), cells, jnp.asarray(factors))
                for name in _NUMBERS:
                    rows = np.asarray(trained[name])
                    for row, (i, k) in zip(rows, used, strict=False):
                        values[name][number, i, k] = row
        report(ProgressEvent("basins", batch + 1, batches))
    return values


class _Cells(NamedTuple):
    """Data sets with initial directions and keys of mini-batches, cells first."""

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
    teacher_norm: str,
) -> _Cells:
    def prepare_cell(key: Array, n: Array) -> _Cells:
        drawn = draw_dataset(model, size, key, positions, teacher_norm)
        start_key, step_key = jax.random.split(Purpose.START.of(key))
        direction = initial_weights(model, start, start_key, drawn.teacher_weights, positions)
        return _Cells(prepare(model, drawn, n), direction, step_key)

    return vmap_runs(prepare_cell)(keys, sizes)


@eqx.filter_jit
def _train(
    model: Model, recipe: Recipe, cells: _Cells, scales: Float[Array, " scales"]
) -> dict[str, Array]:
    """Train every cell from every scale; results have axes (cell, scale)."""

    def train_cell(cell: _Cells) -> dict[str, Array]:
        weights = scales[:, None, None] * cell.direction
        return train_starts(model, cell.data, recipe, cell.key, weights).numbers()

    return vmap_runs(train_cell)(cells)


def basin_shares(dataset: xr.Dataset) -> xr.Dataset:
    """Share of the runs that reached each mechanism, with errors.

    The error is the standard deviation of the posterior of a share with a flat prior, the root of
    ``p (1 - p)/(n + 3)`` with ``p = (k + 1)/(n + 2)``. For many runs it is the binomial error, and
    it does not vanish if all runs agree.

    Examples
    --------
    >>> runs = dp.basins(dp.positional_semantic(), [2.0], [1.0], d=40, seeds=2, optimizers=["gd"])
    >>> dp.analysis.basin_shares(runs)["share"].dims
    ('mechanism', 'optimizer', 'alpha', 'scale')
    """
    count = dataset.sizes["seed"]
    hits = xr.concat(
        [(dataset["mechanism"] == kind).sum("seed") for kind in MECHANISMS],
        xr.Variable("mechanism", list(MECHANISMS)),
    )
    mean = (hits + 1) / (count + 2)
    error = np.sqrt(mean * (1 - mean) / (count + 3))
    return xr.Dataset({"share": hits / count, "stderr": error}, attrs=dataset.attrs)
