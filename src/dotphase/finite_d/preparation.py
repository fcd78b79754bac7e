"""Data sets as the engines take them, each with the weights to begin at."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dotphase.finite_d.batches import padded_size, vmap_runs
from dotphase.finite_d.datasets import Dataset, draw_dataset
from dotphase.finite_d.initialization import StartFunction, initial_weights
from dotphase.finite_d.linear_layer import linear_layer
from dotphase.finite_d.loss import Reduced, Weights, reduce
from dotphase.finite_d.prng_keys import Purpose
from dotphase.model import Model


class Prepared(NamedTuple):
    """A data set: its loss, what was drawn with it, and the linear layer fitted to it, where there
    is one (models that are plain) and it is asked for (`prepare_runs`)."""

    reduced: Reduced
    teacher_weights: Float[Array, "d t"]
    positions: Float[Array, "directions d"]
    linear: Float[Array, "tokens tokens"] | None = None


def prepare(model: Model, data: Dataset, n: Int[Array, ""] | None = None) -> Prepared:
    """Reduce a data set; with `n`, only its first n sentences count, and the rest is padding.

    Padding lets data sets of different sizes share compiled code.
    """
    reduced = reduce(model, data)
    if n is not None:
        used = jnp.arange(data.tokens.shape[0]) < n
        reduced = reduced._replace(used=used.astype(data.tokens.dtype))
    return Prepared(reduced, data.teacher_weights, data.positions)


def prepare_runs(
    model: Model, start: StartFunction, keys: Array, n: int, positions: Float[Array, "tokens d"]
) -> tuple[Prepared, Float[Weights, " runs"]]:
    """Draw the data set of every key, of n sentences, and begin on it."""
    return _prepare_runs(model, start, keys, jnp.asarray(n), padded_size(n), positions)


@eqx.filter_jit
def _prepare_runs(
    model: Model,
    start: StartFunction,
    keys: Array,
    n: Int[Array, ""],
    size: int,
    positions: Float[Array, "tokens d"],
) -> tuple[Prepared, Float[Weights, " runs"]]:
    def one(key: Array) -> tuple[Prepared, Weights]:
        data = draw_dataset(model, size, key, positions)
        first = initial_weights(
            model, start, Purpose.START.of(key), data.teacher_weights, positions
        )
        prepared = prepare(model, data, n)
        if model.plain:
            layer = linear_layer(model, data, prepared.reduced.used)
            prepared = prepared._replace(linear=layer)
        return prepared, first

    return vmap_runs(one)(keys)
