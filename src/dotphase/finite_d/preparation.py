"""Data sets in the form that training and message passing need, with initial weights."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dotphase.finite_d.batches import padded_size, vmap_runs
from dotphase.finite_d.datasets import Dataset, Positions, TeacherWeights, draw_dataset
from dotphase.finite_d.initialization import StartFunction, initial_weights
from dotphase.finite_d.linear_layer import linear_layer
from dotphase.finite_d.loss import Reduced, Weights, reduce
from dotphase.finite_d.prng_keys import Purpose
from dotphase.model import Model


class Prepared(NamedTuple):
    """Data set: its loss, teacher and positions, and the linear layer fitted to it.

    `prepare_runs` fits the layer for plain models; otherwise it is None.
    """

    reduced: Reduced
    teacher_weights: TeacherWeights
    positions: Positions
    linear: Float[Array, "tokens tokens"] | None = None


def prepare(model: Model, data: Dataset, n: Int[Array, ""] | None = None) -> Prepared:
    """Reduce a data set; sentences from the n-th on are padding and have no weight.

    Padding lets data sets of different sizes share compiled code.
    """
    reduced = reduce(model, data)
    if n is not None:
        used = jnp.arange(data.tokens.shape[0]) < n
        reduced = reduced._replace(used=used.astype(data.tokens.dtype))
    return Prepared(reduced, data.teacher_weights, data.positions)


def prepare_runs(
    model: Model,
    start: StartFunction,
    keys: Array,
    n: int,
    positions: Positions,
    teacher_norm: str = "fixed",
) -> tuple[Prepared, Float[Weights, " runs"]]:
    """Draw a data set of n sentences and initial weights for every key."""
    return _prepare_runs(
        model, start, keys, jnp.asarray(n), padded_size(n), positions, teacher_norm
    )


@eqx.filter_jit
def _prepare_runs(
    model: Model,
    start: StartFunction,
    keys: Array,
    n: Int[Array, ""],
    size: int,
    positions: Positions,
    teacher_norm: str,
) -> tuple[Prepared, Float[Weights, " runs"]]:
    def prepare_run(key: Array) -> tuple[Prepared, Weights]:
        data = draw_dataset(model, size, key, positions, teacher_norm)
        weights = initial_weights(
            model, start, Purpose.START.of(key), data.teacher_weights, positions
        )
        prepared = prepare(model, data, n)
        if model.plain:
            layer = linear_layer(model, data, prepared.reduced.used)
            prepared = prepared._replace(linear=layer)
        return prepared, weights

    return vmap_runs(prepare_run)(keys)
