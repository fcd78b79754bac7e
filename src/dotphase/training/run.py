"""Train students on many data sets, in batches that run as one compiled call."""

from __future__ import annotations

import time
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.finite_d.batches import choose_runs_per_batch, run_bytes, vmap_runs
from dotphase.finite_d.datasets import count_sentences, position_vectors
from dotphase.finite_d.initialization import (
    PrescribedStart,
    StartFunction,
    resolve_start,
    start_name,
)
from dotphase.finite_d.loss import Reduced, Weights
from dotphase.finite_d.measurement import count_blocks, diagnose_run, measure, measure_runs
from dotphase.finite_d.preparation import Prepared, prepare_runs
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.finite_d.runs import Run, keep_finished, result_bytes
from dotphase.finite_d.test_error import attention_error, check_dims, quadrature
from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import Rule
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import use_precision
from dotphase.runtime.progress import (
    Progress,
    ProgressCallback,
    ProgressEvent,
    report_nothing,
    reporter,
)
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.training.loop import RunState
from dotphase.training.result import Training
from dotphase.training.settings import TrainingFields, TrainingSettings
from dotphase.training.single_run import Recipe, final_outcome, optimize, train_recording

if TYPE_CHECKING:
    import xarray as xr

#: Steps per compiled call; between calls progress is reported and interrupts are handled.
STEPS_PER_CALL = 250
#: Number of records along one pass, at least.
RECORDS = 100
#: Stages of the progress of `train`: finished runs, and steps of the current batch.
RUNS, STEPS = "training", "steps"

#: Quantities recorded after every step, besides the test error.
RECORDED = ("train_loss", "theta", "m", "q")

_final_outcome = eqx.filter_jit(final_outcome)

#: Quantities of one run at every step; empty if nothing was recorded.
Path = dict[str, Float[np.ndarray, " steps"]]


def train(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 8,
    first_index: int = 0,
    start: str | StartFunction | PrescribedStart = "semantic",
    record: bool = False,
    progress: Progress = None,
    settings: TrainingSettings | None = None,
    **changes: Unpack[TrainingFields],
) -> Training:
    """Train students on data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    seeds : int
        Number of runs, each with its own data set.
    first_index : int
        Index of the first run. Run k does not depend on the other runs.
    start : {"semantic", "positional", "mixed", "random"}, `start_from` or callable
        Initial weights; a callable takes (key, teacher_weights, positions) and returns Q.
    record : bool
        Also measure the students after every step: `Training.path` is a dataset of train_loss,
        test_error, theta, m and q over seed and step. A run that stops early keeps its last values.
        One pass (`fresh`) is measured about `RECORDS` times.
    progress : bool or callable, optional
        Receives a `ProgressEvent` of stage "training" with each finished `Run`, and events of stage
        "steps" while a batch is trained.
    settings : TrainingSettings, optional
        Optimizer, steps, precision and so on.
    **changes
        Fields of `TrainingSettings` that differ from `settings`: optimizer, steps, lr, tolerance,
        minibatch, fresh, momentum, held_out, scale, seed, dtype, runs_per_batch, teacher_norm.

    Returns
    -------
    Training
        Means, standard errors, and the runs; each has `converged` and the reason why it stopped.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` that carries the runs finished so far.

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> training.converged, training.runs[0].mechanism
    (True, 'semantic')
    """
    start_time = time.perf_counter()
    settings = replace_fields(settings or TrainingSettings(), changes)
    n = count_sentences(model, alpha, d)
    settings = settings.for_data(n)
    batch = _Batch(model, d, n, resolve_start(model, start, settings.scale), settings, record)
    seeds = validation.integer("seeds", seeds, at_least=1)
    end = validation.integer("first_index", first_index, at_least=0) + seeds
    bytes_per_run = run_bytes(model, n, d, settings.precision)
    size = choose_runs_per_batch(settings.runs_per_batch, bytes_per_run, seeds, d)
    check_dims(model)
    memory_limit.check_storage("seeds", seeds, result_bytes(model, d))
    runs: list[Run] = []
    paths: list[Path] = []
    report = reporter(progress)
    config: dict[str, Any] = {"alpha": float(alpha), "d": d, "n": n, "start": start_name(start)}
    attributes = provenance(model, **config, **settings.to_dict())

    def result() -> Training:
        return Training(
            model=model,
            **config,
            settings=settings,
            runs=tuple(runs),
            seconds=time.perf_counter() - start_time,
            path=_path_dataset(paths, runs, attributes, batch.every) if record else None,
        )

    # Optax mixes precisions in its own state, so the precision is set for all of JAX.
    with (
        use_precision(settings.precision),
        keep_finished(runs, result),
        memory_limit.explain_out_of_memory(size),
    ):
        for first in range(first_index, end, size):
            # The last batch has the size of the others, so that nothing is compiled again.
            for run, path in batch.train(np.arange(first, first + size), report):
                if run.index < end:
                    runs.append(run)
                    paths.append(path)
                    report(ProgressEvent(RUNS, len(runs), seeds, run))
    return result()


@dataclass(frozen=True)
class _Batch:
    """Arguments that all batches share."""

    model: Model
    d: int
    n: int
    start: StartFunction
    settings: TrainingSettings
    record: bool

    @property
    def every(self) -> int:
        """Number of steps between two records."""
        return max(1, self.settings.max_steps // RECORDS) if self.settings.fresh else 1

    def train(self, indices: np.ndarray, report: ProgressCallback) -> list[tuple[Run, Path]]:
        """Train and measure the runs with these indices."""
        start_time = time.perf_counter()
        settings = self.settings
        model, recipe = cast(self.model, settings.precision), settings.recipe(self.d)
        keys = keys_at(jax.random.key(settings.seed), jnp.asarray(indices)[:, None])
        positions = jnp.asarray(position_vectors(model, self.d), settings.precision)
        data, initial = prepare_runs(
            model, self.start, keys, self.n, positions, settings.teacher_norm
        )
        rule, recorded = quadrature(model), dict[str, Array]()
        if self.record:
            end, recorded = _train_recording(
                model, data, recipe, keys, initial, rule, settings.max_steps, self.every
            )
        else:
            end = optimize_runs(model, data.reduced, recipe, keys, initial, report)
        blocks = count_blocks(settings.held_out)
        measured = measure_runs(model, data, end.point.weights, rule, keys, blocks)
        outcomes = _final_outcome(end.outcome, measured["gradient_norm"], recipe)
        arrays = jax.tree.map(
            np.asarray, (measured, outcomes, end.steps, end.point.weights, recorded)
        )
        seconds = (time.perf_counter() - start_time) / len(indices)
        results = []
        for position, index in enumerate(indices):
            values, outcome, steps, weights, path = jax.tree.map(itemgetter(position), arrays)
            outcome, hint = Outcome(int(outcome)), ""
            if not all(np.isfinite(value) for value in values.values()):
                outcome, own_data = Outcome.NOT_FINITE, jax.tree.map(itemgetter(position), data)
                hint = f": {diagnose_run(model, own_data, weights, rule)}"
            elif outcome is Outcome.DIVERGED and settings.algorithm.lr is not None:
                hint = "; use smaller steps (lr)"
            run = Run(
                index=int(index),
                converged=outcome == Outcome.CONVERGED,
                reason=outcome.message + hint,
                outcome=outcome.word,
                iterations=int(steps),
                seconds=seconds,
                weights=weights,
                **{name: float(value) for name, value in values.items()},  # type: ignore[arg-type]
            )
            results.append((run, path))
        return results


def cast(model: Model, dtype: np.dtype) -> Model:
    """Return the model with its numbers in a precision, so that arrays keep theirs."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf, dtype) if eqx.is_inexact_array_like(leaf) else leaf, model
    )


def optimize_runs(
    model: Model,
    data: Reduced,
    recipe: Recipe,
    keys: Array,
    weights: Weights,
    report: ProgressCallback = report_nothing,
) -> RunState:
    """Train a batch of runs, `STEPS_PER_CALL` at a time; all arrays have the batch axis first."""
    max_steps = int(recipe.steps)
    state: Weights | RunState = weights
    steps = 0
    while True:
        limit = jnp.asarray(min(steps + STEPS_PER_CALL, max_steps))
        state = _advance(model, data, recipe, keys, state, limit)
        interrupt.check()
        steps = int(jnp.max(state.steps))
        report(ProgressEvent(STEPS, steps, max_steps))
        if not bool(jnp.any(state.outcome == Outcome.RUNNING)):
            return state


@eqx.filter_jit
def _advance(
    model: Model,
    data: Reduced,
    recipe: Recipe,
    keys: Array,
    state: Weights | RunState,
    until: Array,
) -> RunState:
    """Start or resume runs; one function does both, because most runs need one call only."""

    def advance_run(data: Reduced, key: Array, state: Weights | RunState) -> RunState:
        return optimize(model, data, recipe, Purpose.STEPS.of(key), state, until)

    return vmap_runs(advance_run)(data, keys, state)


@eqx.filter_jit
def _train_recording(
    model: Model,
    data: Prepared,
    recipe: Recipe,
    keys: Array,
    weights: Weights,
    rule: Rule,
    steps: int,
    every: int,
) -> tuple[RunState, dict[str, Array]]:
    """Train, and measure the students at the start and after each `every` steps."""

    def train_run(
        data: Prepared, key: Array, weights: Weights
    ) -> tuple[RunState, dict[str, Array]]:
        def observe(weights: Weights) -> dict[str, Array]:
            measured = measure(model, data, weights)._asdict()
            error = attention_error(model, weights, data.teacher_weights, data.positions, rule)
            return {name: measured[name] for name in RECORDED} | {"test_error": error}

        step_key = Purpose.STEPS.of(key)
        return train_recording(
            model, data, recipe, step_key, weights, observe, -(-steps // every), every
        )

    return vmap_runs(train_run)(data, keys, weights)


def _path_dataset(
    paths: list[Path], runs: list[Run], attributes: dict[str, Any], every: int
) -> xr.Dataset:
    """Return the recorded quantities of all runs over seed and step."""
    import xarray as xr

    rows = {name: np.stack([path[name] for path in paths]) for name in paths[0]}
    coords = {
        "seed": [run.index for run in runs],
        "step": np.minimum(every * np.arange(rows["train_loss"].shape[1]), attributes["steps"]),
    }
    variables = {name: (("seed", "step"), values) for name, values in rows.items()}
    dataset = xr.Dataset(variables, coords=coords, attrs=attributes)
    if attributes["fresh"]:
        seen = dataset["step"] * attributes["minibatch"] / attributes["d"]
        dataset = dataset.assign_coords(alpha=seen)
    return add_labels(dataset)
