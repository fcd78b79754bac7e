"""Measurements on single sentences: centered log attention, and patterns of attention."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

#: Order of the patterns in arrays.
PATTERN_NAMES = ("previous", "diagonal", "first", "duplicate", "entropy")


class Measured(NamedTuple):
    """Measurements of a chunk: patterns, with `weights` as sums over `rows`, and the following."""

    x: Float[Array, "sentences queries keys heads"]  # log attention minus its mean in the row
    square: Float[Array, " heads"]  # sum of x^2
    weights: Float[Array, "patterns heads"]
    uniform: Float[Array, " patterns"]  # the same for uniform attention
    rows: Float[Array, " patterns"]  # for the entropy: the sum of its largest values
    row_error: Float[Array, ""]  # largest difference of a row sum from one


@partial(jax.jit, static_argnames="scores")
def measure(
    attention: Float[Array, "sentences heads queries keys"],
    allowed: Bool[Array, "sentences queries keys"],
    same_token: Bool[Array, "sentences queries keys"],
    entries: Bool[Array, "sentences queries keys"],
    floor: Float[Array, ""],
    scores: bool,
) -> Measured:
    """Measure a chunk, x on the entries only.

    Weights below the floor are raised to it before the logarithm.
    """
    mask, keys = allowed[:, None], allowed.sum(axis=-1)
    if scores:
        attention = jnp.where(mask, attention, -jnp.inf)
        log_weights = jax.nn.log_softmax(attention, axis=-1, where=mask)
        attention = jnp.exp(log_weights)
    else:
        log_weights = jnp.log(jnp.maximum(attention, floor))
    attention, log_weights = jnp.where(mask, attention, 0), jnp.where(mask, log_weights, 0)
    included = entries[:, None]
    total = jnp.where(included, log_weights, 0).sum(axis=-1, keepdims=True)
    x = log_weights - total / jnp.maximum(included.sum(axis=-1, keepdims=True), 1)
    x = jnp.where(included, x, 0)
    row_error = jnp.where((keys > 0)[:, None], jnp.abs(attention.sum(axis=-1) - 1), 0)
    patterns = pattern_keys(allowed, same_token)
    weights = [jnp.einsum("shqk,sqk->h", attention, keys_of) for keys_of in patterns]
    share = 1 / jnp.maximum(keys, 1)[..., None]
    uniform = [jnp.where(keys_of, share, 0).sum() for keys_of in patterns]
    rows = [keys_of.any(axis=-1).sum() for keys_of in patterns]
    log_keys = jnp.log(jnp.maximum(keys, 1)).sum()
    entropy = -(attention * log_weights).sum(axis=(0, 2, 3))
    return Measured(
        x=jnp.moveaxis(x, 1, -1),
        square=(x**2).sum(axis=(0, 2, 3)),
        weights=jnp.stack([*weights, entropy]),
        uniform=jnp.stack([*uniform, log_keys]),
        rows=jnp.stack([*rows, log_keys]),
        row_error=row_error.max(),
    )


def pattern_keys(allowed: Array, same_token: Array) -> list[Array]:
    """Keys of the patterns previous, diagonal, first and duplicate, where they are allowed."""
    query = jnp.arange(allowed.shape[1])[:, None]
    key = jnp.arange(allowed.shape[2])[None, :]
    rows = (allowed.sum(axis=-1) > 1)[..., None] & allowed
    return [
        rows & (key == query - 1),
        rows & (key == query),
        rows & (key == 0) & (query > 0),
        rows & same_token & (key != query),
    ]
