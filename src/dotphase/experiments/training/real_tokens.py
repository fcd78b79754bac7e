"""Training on sentences of real tokens, drawn from a table of embeddings."""

from collections.abc import Sequence
from typing import Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.finite_d.datasets import Dataset, count_sentences, orthonormalize, position_vectors
from dotphase.finite_d.embeddings import Tokens
from dotphase.finite_d.initialization import StartFunction, initial_weights, resolve_start
from dotphase.finite_d.loss import Weights, project, reduce, sentence_losses
from dotphase.finite_d.preparation import prepare
from dotphase.model.definition import Model, refuse
from dotphase.numerics.outcome import Outcome
from dotphase.runtime import interrupt
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress, ProgressCounter
from dotphase.storage.provenance import provenance
from dotphase.training.settings import TrainingFields, TrainingSettings
from dotphase.training.single_run import Recipe, train_starts

#: Default settings.
SETTINGS = TrainingSettings(held_out=4096)
FIELDS = ("train_loss", "test_error", "theta", "m", "q", "converged")


@in_double_precision
def train_on_table(
    model: Model,
    tokens: Tokens,
    alphas: Sequence[float],
    *,
    seeds: int = 4,
    starts: Sequence[str] = ("semantic", "positional"),
    progress: Progress = None,
    settings: TrainingSettings | None = None,
    **changes: Unpack[TrainingFields],
) -> xr.Dataset:
    """Train students on sentences of real tokens, drawn uniformly from the rows of a table.

    Tokens have the sizes sigma of the model and the spectrum of the table. All starts share the
    data sets; each data set has its own teacher.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    tokens : Tokens
        The table, from `dotphase.embeddings.prepare_table`.
    alphas : sequence of float
        Sentences per dimension.
    seeds : int
        Data sets per alpha.
    starts : names of starts
        As in `dotphase.train`.
    progress : bool or callable, optional
        Receives an event for each data set (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.train`, in double precision; `held_out` is the number of new sentences of
        the table for the test error. By default steps are chosen for the final weights.

    Returns
    -------
    xarray.Dataset
        Over alpha, seed and start.

    Examples
    --------
    >>> import numpy as np
    >>> tokens = dp.embeddings.prepare_table(np.random.default_rng(0).standard_t(8, (600, 20)))
    >>> model = dp.positional_semantic()
    >>> runs = dp.analysis.train_on_table(model, tokens, [4.0], seeds=2, held_out=256)
    >>> runs["train_loss"].dims
    ('alpha', 'seed', 'start')
    """
    refuse(model, "training on a table", "noise", "latent", "correlation")
    settings = replace_fields(settings or SETTINGS, changes).for_endpoint()
    model = model.replace(spectrum=tokens.spectrum)
    d = tokens.table.shape[1]
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    seeds = validation.integer("seeds", seeds, at_least=1)
    functions = tuple(resolve_start(model, start, settings.scale) for start in starts)
    recipe, counter = settings.recipe(d), ProgressCounter("table", len(sizes) * seeds, progress)
    positions, table = jnp.asarray(position_vectors(model, d)), jnp.asarray(tokens.table)
    values = {name: np.full((len(sizes), seeds, len(starts)), np.nan) for name in FIELDS}
    for i, n in enumerate(sizes):
        for k in range(seeds):
            interrupt.check()
            rng = np.random.default_rng([settings.seed, i, k])
            shape = (max(sizes) + settings.held_out, model.length)
            rows = jnp.asarray(rng.integers(len(table), size=shape))
            weights = jnp.asarray(rng.standard_normal((d, model.teacher_rank)))
            if settings.teacher_norm == "fixed":
                weights = orthonormalize(weights)
            key = jax.random.key(int(rng.integers(2**31)))
            # All alphas share one shape, and its compiled code: further sentences have no weight.
            trained = _train(
                model, functions, recipe, table, rows, weights, positions, jnp.asarray(n), key,
                max(sizes),
            )  # fmt: skip
            for name in FIELDS:
                values[name][i, k] = np.asarray(trained[name])
            counter.tick()
    axes = ("alpha", "seed", "start")
    config = {"d": d, "vocabulary": len(table), **settings.endpoint_config()}
    return xr.Dataset(
        {name: (axes, value) for name, value in values.items()},
        coords={"alpha": [float(a) for a in alphas], "seed": np.arange(seeds), "start": [*starts]},
        attrs=provenance(model, **config, held_out=settings.held_out),
    )


@eqx.filter_jit
def _train(
    model: Model,
    starts: tuple[StartFunction, ...],
    recipe: Recipe,
    table: Float[Array, "vocabulary d"],
    rows: Int[Array, "sentences tokens"],
    teacher_weights: Float[Array, "d t"],
    positions: Float[Array, "tokens d"],
    n: Int[Array, ""],
    key: Array,
    size: int,
) -> dict[str, Array]:
    """Train from every start on the first n of `size` sentences; the rest measures the error."""

    def sentences(rows: Int[Array, "sentences tokens"]) -> Dataset:
        sigma = jnp.asarray(model.sigma)[:, None]
        nothing = jnp.zeros((len(rows), 0), table.dtype)
        return Dataset(sigma * table[rows], teacher_weights, positions, nothing)

    data, fresh = prepare(model, sentences(rows[:size]), n), reduce(model, sentences(rows[size:]))
    first = [initial_weights(model, start, key, teacher_weights, positions) for start in starts]
    trained = train_starts(model, data, recipe, key, jnp.stack(first))

    def test_error(weights: Weights) -> Float[Array, ""]:
        losses = sentence_losses(model, fresh, project(fresh.z, weights))
        return 2 * jnp.mean(losses) / model.length

    errors = jax.vmap(test_error)(trained.weights)
    converged = (trained.outcome == Outcome.CONVERGED) & jnp.isfinite(errors)
    return {**trained.numbers(), "test_error": errors, "converged": converged}
