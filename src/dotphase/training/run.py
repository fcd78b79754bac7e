"""Training runs over many seeds, in batches, with everything a run is judged by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.finite_d.batches import bytes_of_run, choose_batch, over_runs
from dotphase.finite_d.datasets import count_sentences, position_vectors
from dotphase.finite_d.initialization import Prescribed, StartFunction, name_of, resolve
from dotphase.finite_d.loss import Reduced, Weights
from dotphase.finite_d.measurement import count_blocks, measure, measure_runs
from dotphase.finite_d.nonfinite import diagnose_run
from dotphase.finite_d.preparation import Prepared, prepare_runs
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.finite_d.runs import Run, bytes_kept, keeping
from dotphase.finite_d.test_error import attention_error, check_dims, quadrature
from dotphase.model import Model
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.quadrature import Rule
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import use_precision
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.training.kernel import Recipe, optimize, settled
from dotphase.training.kernel import record as follow
from dotphase.training.loop import Progress
from dotphase.training.result import Training
from dotphase.training.settings import TrainingFields, TrainingSettings

if TYPE_CHECKING:
    import xarray as xr

#: Steps between two looks at the clock, the progress bar and the keyboard.
STRIDE = 250

#: What is measured after every step besides the test error.
OVERLAPS = ("train_loss", "theta", "m", "q")

_settled = eqx.filter_jit(settled)

OnStep = Callable[[int, int], None]
#: Quantities of one run at every step; none if nothing was recorded.
Path = dict[str, Float[np.ndarray, " steps"]]


def train(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 8,
    first: int = 0,
    start: str | StartFunction | Prescribed = "semantic",
    record: bool = False,
    settings: TrainingSettings | None = None,
    on_step: OnStep | None = None,
    on_run: Callable[[Run], None] | None = None,
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
        Number of runs, each with a data set of its own.
    first : int
        Number of the first run: run k is the same however many others there are.
    start : {"semantic", "positional", "mixed", "random"}, `start_from` or callable
        Where to begin; a callable takes (key, teacher_weights, positions) and returns Q.
    record : bool
        Whether to measure the students after every step as well: `Training.path`, a dataset of
        train_loss, test_error, theta, m and q over seed and step. A run that ends before its last
        step stays where it is.
    settings : TrainingSettings, optional
        Optimizer, steps, precision and so on.
    on_step, on_run : callable, optional
        Called with (steps taken, most steps) while a batch is trained, and with each `Run`.
    **changes
        Fields of `TrainingSettings` that are to differ from `settings`: optimizer, steps, lr,
        tolerance, minibatch, momentum, held_out, scale, seed, dtype, batch.

    Returns
    -------
    Training
        Means, standard errors, and the runs; each says whether it converged and why it
        stopped.

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
    began = time.perf_counter()
    settings = replace_fields(settings or TrainingSettings(), changes)
    n = count_sentences(model, alpha, d)
    begin = resolve(model, start, settings.scale)
    seeds = validation.integer("seeds", seeds, at_least=1)
    last = validation.integer("first", first, at_least=0) + seeds
    each = bytes_of_run(model, n, d, settings.precision)
    batch = choose_batch(settings.batch, each, seeds, d)
    check_dims(model)
    memory_limit.check_storage("seeds", seeds, bytes_kept(model, d))
    runs: list[Run] = []
    paths: list[Path] = []

    def result() -> Training:
        return Training(
            model=model,
            alpha=float(alpha),
            d=d,
            n=n,
            start=name_of(start),
            optimizer=settings.optimizer,
            runs=tuple(runs),
            seconds=time.perf_counter() - began,
            budget=settings.budgeted,
            path=_labelled(paths, runs, asked) if record else None,
        )

    asked = provenance(
        model, alpha=alpha, d=d, n=n, start=name_of(start), optimizer=settings.optimizer,
        lr=settings.step_size, seed=settings.seed,
    )  # fmt: skip

    # Optax mixes precisions in its own state, so single precision is the setting of all of it.
    with (
        use_precision(settings.precision),
        keeping(runs, result),
        memory_limit.explain_out_of_memory(batch),
    ):
        for begun in range(first, last, batch):
            # The last batch is filled up to the same size, so that nothing is compiled again.
            numbers = np.arange(begun, begun + batch)
            trained = _train_batch(model, d, n, begin, settings, numbers, on_step, record)
            for run, path in trained:
                if run.seed < last:
                    runs.append(run)
                    paths.append(path)
                    if on_run is not None:
                        on_run(run)
    return result()


def _train_batch(
    model: Model,
    d: int,
    n: int,
    start: StartFunction,
    settings: TrainingSettings,
    numbers: np.ndarray,
    on_step: OnStep | None,
    record: bool,
) -> Iterator[tuple[Run, Path]]:
    began = time.perf_counter()
    model, recipe = cast(model, settings.precision), settings.recipe(d)
    keys = keys_at(jax.random.key(settings.seed), jnp.asarray(numbers)[:, None])
    positions = jnp.asarray(position_vectors(model, d), settings.precision)
    data, first = prepare_runs(model, start, keys, n, positions)
    noted: dict[str, Array] = {}
    if record:
        end, noted = _record(
            model, data, recipe, keys, first, quadrature(model), settings.most_steps
        )
    else:
        end = optimize_runs(model, data.reduced, recipe, keys, first, on_step)
    blocks = count_blocks(settings.held_out)
    found = measure_runs(model, data, end.point.weights, quadrature(model), keys, blocks)
    outcomes = np.asarray(_settled(end.outcome, found["gradient_norm"], recipe))
    values, steps = jax.tree.map(np.asarray, (found, end.taken))
    weights = np.asarray(end.point.weights)
    seconds = (time.perf_counter() - began) / len(numbers)
    for lane, number in enumerate(numbers):
        outcome, hint = Outcome(int(outcomes[lane])), ""
        if not all(np.isfinite(value[lane]) for value in values.values()):
            outcome, own = Outcome.NOT_FINITE, jax.tree.map(itemgetter(lane), data)
            hint = f": {diagnose_run(model, own, weights[lane], quadrature(model))}"
        elif outcome is Outcome.DIVERGED and settings.algorithm.lr is not None:
            hint = "; use smaller steps (lr)"
        run = Run(
            seed=int(number),
            converged=outcome == Outcome.CONVERGED,
            reason=outcome.message + hint,
            outcome=outcome.word,
            iterations=int(steps[lane]),
            seconds=seconds,
            weights=weights[lane],
            **{name: float(value[lane]) for name, value in values.items()},
        )
        yield run, {name: np.asarray(rows[lane]) for name, rows in noted.items()}


def cast(model: Model, dtype: np.dtype) -> Model:
    """The model with its numbers in the given precision, so that arrays keep theirs."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf, dtype) if eqx.is_inexact_array_like(leaf) else leaf, model
    )


def optimize_runs(
    model: Model,
    data: Reduced,
    recipe: Recipe,
    keys: Array,
    weights: Weights,
    on_step: OnStep | None = None,
) -> Progress:
    """Train a batch of runs, some steps at a time; the axis of the batch comes first everywhere."""
    steps = int(recipe.steps)
    now = _advance(model, data, recipe, keys, weights, jnp.asarray(min(STRIDE, steps)))
    while True:
        interrupt.check()
        taken = int(jnp.max(now.taken))
        if on_step is not None:
            on_step(taken, steps)
        if not bool(jnp.any(now.outcome == Outcome.RUNNING)):
            return now
        now = _advance(model, data, recipe, keys, now, jnp.asarray(min(taken + STRIDE, steps)))


@eqx.filter_jit
def _advance(
    model: Model,
    data: Reduced,
    recipe: Recipe,
    keys: Array,
    where: Weights | Progress,
    until: Array,
) -> Progress:
    """Begin and take the first steps, or go on: most runs need the first alone to be compiled."""

    def one(data: Reduced, key: Array, where: Weights | Progress) -> Progress:
        return optimize(model, data, recipe, Purpose.STEPS.of(key), where, until)

    return over_runs(one)(data, keys, where)


@eqx.filter_jit
def _record(
    model: Model,
    data: Prepared,
    recipe: Recipe,
    keys: Array,
    weights: Weights,
    rule: Rule,
    steps: int,
) -> tuple[Progress, dict[str, Array]]:
    """Train, and note what the students are like at the start and after every step."""

    def one(data: Prepared, key: Array, weights: Weights) -> tuple[Progress, dict[str, Array]]:
        def note(weights: Weights) -> dict[str, Array]:
            found = measure(model, data, weights)._asdict()
            error = attention_error(model, weights, data.teacher_weights, data.positions, rule)
            return {name: found[name] for name in OVERLAPS} | {"test_error": error}

        return follow(
            model, data, recipe, Purpose.STEPS.of(key), weights, note, records=steps, every=1
        )

    return over_runs(one)(data, keys, weights)


def _labelled(paths: list[Path], runs: list[Run], attributes: dict[str, Any]) -> xr.Dataset:
    """What was noted of every run, over seed and step."""
    import xarray as xr

    rows = {name: np.stack([path[name] for path in paths]) for name in paths[0]}
    steps = np.arange(rows["train_loss"].shape[1])
    dataset = xr.Dataset(
        {name: (("seed", "step"), values) for name, values in rows.items()},
        coords={"seed": [run.seed for run in runs], "step": steps},
        attrs=attributes,
    )
    return add_labels(dataset)
