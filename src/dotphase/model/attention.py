"""Attention functions: projected tokens to attention matrices, one sentence at a time."""

from functools import reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.numerics.linalg import dot, parts

#: Longest sentence whose attention is written out entry by entry.
UNROLL_LIMIT = 2


def softmax_attention(h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
    """Tied dot-product attention, ``softmax(h h^T)`` row by row.

    Examples
    --------
    >>> import numpy as np
    >>> dp.softmax_attention(np.zeros((2, 1))).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return dot_product_attention(h, h)


def dot_product_attention(
    queries: Float[Array, "tokens rank"], keys: Float[Array, "tokens rank"]
) -> Float[Array, "tokens tokens"]:
    """``softmax(queries keys^T)`` row by row."""
    tokens = queries.shape[0]
    if tokens > UNROLL_LIMIT:
        return jax.nn.softmax(queries @ keys.T, axis=-1)
    # Entry by entry, two tokens compile to straight code that is several times faster over many
    # points than a batch of tiny matrix products. More tokens compile slowly and gain nothing.
    query_rows, key_rows = ([parts(row) for row in parts(each)] for each in (queries, keys))
    score = [[dot(query, key) for key in key_rows] for query in query_rows]
    return jnp.stack([jnp.stack(_softmax(row)) for row in score])


def _softmax(row: list[Array]) -> list[Array]:
    top = jax.lax.stop_gradient(reduce(jnp.maximum, row))
    weight = [jnp.exp(entry - top) for entry in row]
    total = reduce(jnp.add, weight)
    return [entry / total for entry in weight]


def untied_attention(h: Float[Array, "tokens columns"]) -> Float[Array, "tokens tokens"]:
    """``softmax(h_Q h_K^T)`` row by row; the first half of the columns are the queries."""
    queries, keys = jnp.split(h, 2, axis=1)
    return dot_product_attention(queries, keys)
