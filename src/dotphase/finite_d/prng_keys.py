"""Random keys at finite dimension, one for each purpose."""

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from dotphase.config import validation


class Purpose(enum.IntEnum):
    """Purposes of the keys derived from that of a run; its data are drawn from the key itself."""

    START = 101
    STEPS = 102
    TEST = 103
    BASELINE = 104

    def of(self, key: Array) -> Array:
        """Return the key for this purpose."""
        return jax.random.fold_in(key, int(self))


def as_key(key: Any) -> Array:
    """Return a JAX key from an integer or a key."""
    if isinstance(key, jax.Array) and (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.shape == (2,)
    ):
        return key
    return jax.random.key(validation.integer("key", key, at_least=0))


@eqx.filter_jit
def keys_at(root: Array, indices: Int[Array, "runs axes"]) -> Array:
    """Return one key per row of `indices`, whose entries are folded in one after the other."""

    def key_at(index: Int[Array, " axes"]) -> Array:
        key = root
        for axis in range(index.shape[0]):
            key = jax.random.fold_in(key, index[axis])
        return key

    return jax.vmap(key_at)(indices)
