"""Updates of selected points of a batch, in chunks of a fixed size."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

#: Number of selected points in a chunk: few on a CPU, where they stay in its cache; many on an
#: accelerator, where a step costs the same time for any number of them.
CHUNK, CHUNK_ON_ACCELERATOR = 128, 2**15

#: Arrays with one entry for each point, on the first or on the last axis.
S = TypeVar("S")


def update_selected(
    selected: Bool[Array, " points"],
    update: Callable[[S, Any], S],
    state: S,
    inputs: Any,
    axis: int,
) -> S:
    """Apply `update` to the state and the inputs of the selected points only, chunk by chunk.

    Compiled shapes are fixed. The number of chunks, not their shape, depends on the number of
    selected points, which are on the axis 0 or -1 of all arrays.
    """
    total = selected.shape[0]
    chunk = min(CHUNK if jax.default_backend() == "cpu" else CHUNK_ON_ACCELERATOR, total)

    def gather_and_update(state: S) -> S:
        count = jnp.sum(selected, dtype=jnp.int32)
        rank = jnp.cumsum(selected, dtype=jnp.int32) - 1
        # order[k] is the k-th selected point; slots past the end stay at `total`.
        order = jnp.full(total + chunk, total, jnp.int32)
        order = order.at[jnp.where(selected, rank, total + chunk)].set(
            jnp.arange(total, dtype=jnp.int32), mode="drop"
        )

        def work(carry: tuple[Array, S]) -> tuple[Array, S]:
            first, current = carry
            index = jax.lax.dynamic_slice(order, (first,), (chunk,))
            # Slots past the end repeat the first selected point; their result is dropped.
            safe = jnp.where(index < total, index, order[0])
            points, part = jax.tree.map(lambda leaf: leaf[_at(safe, axis)], (inputs, current))
            merged = jax.tree.map(
                lambda old, new: old.at[_at(index, axis)].set(new, mode="drop"),
                current,
                update(part, points),
            )
            return first + chunk, merged

        first = jnp.zeros((), jnp.int32)
        return jax.lax.while_loop(lambda carry: carry[0] < count, work, (first, state))[1]

    return jax.lax.cond(jnp.any(selected), gather_and_update, lambda state: state, state)


def _at(index: Int[Array, " chunk"], axis: int) -> Any:
    return (..., index) if axis else index
