"""Keys of everything random at finite dimension, each used for one purpose."""

from __future__ import annotations

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from dotphase.config import validation


class Purpose(enum.IntEnum):
    """What a part of a run's key is for; the data are drawn from the key itself."""

    START = 101
    STEPS = 102
    TEST = 103
    BASELINE = 104

    def of(self, key: Array) -> Array:
        """The key for this purpose."""
        return jax.random.fold_in(key, int(self))


def as_key(key: Any) -> Array:
    """A JAX key from a whole number or a key."""
    if isinstance(key, jax.Array) and (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.shape == (2,)
    ):
        return key
    return jax.random.key(validation.integer("key", key, at_least=0))


@eqx.filter_jit
def keys_at(root: Array, places: Int[Array, "runs axes"]) -> Array:
    """One key for each place: numbers of a run, or of a cell and a run in it, folded in in turn."""

    def one(place: Int[Array, " axes"]) -> Array:
        key = root
        for axis in range(place.shape[0]):
            key = jax.random.fold_in(key, place[axis])
        return key

    return jax.vmap(one)(places)
