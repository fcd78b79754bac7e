"""Data sets as the engines take them, each with the weights to begin at."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dotphase.finite.batches import over_runs
from dotphase.finite.begin import StartFunction, begin
from dotphase.finite.data import Dataset, draw
from dotphase.finite.keys import Purpose
from dotphase.finite.linear import linear_layer
from dotphase.finite.loss import Reduced, Weights, reduce
from dotphase.model import Model


class Prepared(NamedTuple):
    """A data set: its loss, what was drawn with it, and the linear layer fitted to it.

    Padded data sets have no linear layer: it would see all sentences. Neither have models that are
    not plain.
    """

    reduced: Reduced
    teacher_weights: Float[Array, "d t"]
    positions: Float[Array, "directions d"]
    linear: Float[Array, "tokens tokens"] | None


def prepare(model: Model, data: Dataset, n: Int[Array, ""] | None = None) -> Prepared:
    """Reduce a data set; with `n`, only its first n sentences count, and the rest is padding.

    Padding lets data sets of different sizes share compiled code.
    """
    reduced, linear = reduce(model, data), None
    if n is None and model.plain:
        linear = linear_layer(model, data)
    if n is not None:
        used = jnp.arange(data.tokens.shape[0]) < n
        reduced = reduced._replace(used=used.astype(data.tokens.dtype))
    return Prepared(reduced, data.teacher_weights, data.positions, linear)


@eqx.filter_jit
def prepare_runs(
    model: Model, start: StartFunction, keys: Array, n: int, positions: Float[Array, "tokens d"]
) -> tuple[Prepared, Float[Weights, " runs"]]:
    """Draw the data set of every key and begin on it."""

    def one(key: Array) -> tuple[Prepared, Weights]:
        data = draw(model, n, key, positions)
        first = begin(model, start, Purpose.START.of(key), data.teacher_weights, positions)
        return prepare(model, data), first

    return over_runs(one)(keys)
