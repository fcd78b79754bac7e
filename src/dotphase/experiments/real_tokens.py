"""Training on sentences of real tokens, drawn from a table of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from dotphase._numerics import validate
from dotphase._numerics.outcome import Outcome
from dotphase._numerics.precision import in_double_precision
from dotphase.finite import loss as reduced
from dotphase.finite.data import Dataset, count_sentences, position_vectors, weighted_product
from dotphase.finite.embeddings import Tokens
from dotphase.finite.loss import Reduced
from dotphase.finite.starts import begin, resolve
from dotphase.model import Model
from dotphase.model.paper import positional_semantic
from dotphase.storage.provenance import provenance
from dotphase.training.batch import objective
from dotphase.training.optimisers import OPTIMISERS, Settings, advance, launch
from dotphase.training.run import TOLERANCE

#: Most steps of L-BFGS.
STEPS = 1000
#: Fresh sentences on which the test error is measured.
HELD_OUT = 4096
FIELDS = ("train_loss", "test_error", "theta", "m", "q", "converged")


@in_double_precision
def train_on_table(
    tokens: Tokens,
    alphas: Sequence[float],
    *,
    starts: Sequence[str] = ("semantic", "positional"),
    seeds: int = 4,
    omega: float = 0.3,
    sigma: float = 0.5,
    ridge: float = 0.01,
    seed: int = 0,
) -> xr.Dataset:
    """Train the paper's student on sentences whose tokens are rows of a table.

    Parameters
    ----------
    tokens : Tokens
        From `dotphase.finite.embeddings.prepare`; rows are drawn uniformly, scaled by sigma.
    alphas : sequence of float
        Sentences per dimension.
    starts : names of starts
        As in `dotphase.train`; they share the data of a seed.
    seeds : int
        Data sets for each alpha, each with a teacher of its own.
    omega, sigma, ridge : float
        As in `dotphase.positional_semantic`.
    seed : int
        Seed of everything random.

    Returns
    -------
    xarray.Dataset
        Over alpha, seed and start. The test error is that on fresh sentences of the table.
    """
    model = positional_semantic(omega, sigma, ridge, spectrum=tokens.spectrum)
    d = tokens.table.shape[1]
    sizes = [count_sentences(model, alpha, d) for alpha in alphas]
    seeds = validate.whole("seeds", seeds, at_least=1)
    seed = validate.whole("seed", seed, at_least=0)
    chosen = tuple(resolve(model, start) for start in starts)
    positions = jnp.asarray(position_vectors(model, d))
    table = jnp.asarray(sigma * tokens.table)
    values = {name: np.full((len(sizes), seeds, len(starts)), np.nan) for name in FIELDS}
    for i, n in enumerate(sizes):
        for k in range(seeds):
            rng = np.random.default_rng([seed, i, k])
            rows = rng.integers(len(table), size=(max(sizes) + HELD_OUT, model.length))
            weights = jnp.asarray(rng.standard_normal((d, model.teacher_rank)))
            key = jax.random.key(int(rng.integers(2**31)))
            # All alphas share one shape, and what is compiled for it: the rest has no weight.
            count, places = jnp.asarray(n), jnp.asarray(rows)
            found = _train(model, chosen, table, places, weights, positions, count, key)
            for name in FIELDS:
                values[name][i, k] = np.asarray(found[name])
    axes = ("alpha", "seed", "start")
    return xr.Dataset(
        {name: (axes, value) for name, value in values.items()},
        coords={"alpha": [float(a) for a in alphas], "seed": np.arange(seeds), "start": [*starts]},
        attrs=provenance(d=d, vocabulary=len(table), omega=omega, sigma=sigma, ridge=ridge),
    )


@eqx.filter_jit
def _train(
    model: Model,
    starts: tuple[Any, ...],
    table: Float[Array, "vocabulary d"],
    rows: Array,
    teacher_weights: Float[Array, "d t"],
    positions: Float[Array, "tokens d"],
    n: Array,
    key: Array,
) -> dict[str, Array]:
    """Train from every start on the first n sentences; the last ones are for the test."""
    d = positions.shape[1]
    data = Dataset(table[rows], teacher_weights, positions)
    every = reduced.reduce(model, data)
    size = rows.shape[0] - HELD_OUT
    some = _part(every, slice(None, size))
    some = some._replace(used=(jnp.arange(size) < n).astype(table.dtype))
    fresh = _part(every, slice(size, None))
    tolerance = jnp.asarray(TOLERANCE["float64"] * np.sqrt(d))
    settings = Settings(jnp.ones(()), jnp.asarray(STEPS), tolerance, key)

    def one(weights: Array) -> dict[str, Array]:
        method = OPTIMISERS["lbfgs"].build(objective(model, some, 1), settings)
        end = advance(method, settings, launch(method, settings, weights), settings.steps)
        found = end.point.weights
        losses = reduced.sentence_losses(model, fresh, reduced.project(fresh.z, found))
        return {
            "train_loss": end.point.value / d,
            "test_error": 2 * jnp.mean(losses) / model.length,
            "theta": jnp.linalg.norm(weighted_product(model, found, teacher_weights)),
            "m": jnp.linalg.norm(found.T @ positions[0]) / np.sqrt(d),
            "q": jnp.linalg.norm(weighted_product(model, found, found)),
            "converged": end.outcome == Outcome.CONVERGED,
        }

    first = [begin(model, start, key, teacher_weights, positions) for start in starts]
    return jax.vmap(one)(jnp.stack(first))


def _part(whole: Reduced, chosen: slice) -> Reduced:
    form = reduced.Form(*(leaf[..., chosen] for leaf in whole.form))
    return Reduced(whole.z[chosen], form, whole.used[chosen])
