"""Derivatives of losses of ``S = softmax(Q K^T)`` by queries and keys, as arrays.

These are the formulas of `dotphase.numerics.softmax_derivatives` in array form, for any number of
tokens. The loss is a sum over tokens i of quadratic functions of the rows S_i. With a_i
and C the gradient and the Hessian of such a function, its derivatives in the scores ``z_ij = Q_i .
K_j`` are
    G_ij = S_ij b_ij,   b_ij = a_ij - S_i . a_i,
    M^i_jk = S_ij S_ik C_jk - u_ij S_ik - S_ij u_ik + delta_jk G_ij,
    u_ij = S_ij ((C S_i)_j + b_ij - S_i C S_i / 2),

and the chain rule gives, with ``Y^i_j = sum_k M^i_jk K_k``,

    gradient:  sum_j G_ij K_j at query i,   sum_i G_ij Q_i at key j;
    Hessian:   sum_j Y^i_j K_j^T at (query i, query i),   Y^i_j Q_i^T + G_ij I at (query i, key j),
               sum_i M^i_jk Q_i Q_i^T at (key j, key k).

If C is diagonal, M is a diagonal plus two products of vectors, and only the last sum, a product of
matrices, costs more than L^2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.numerics.linalg import Entries
from dotphase.numerics.taylor import Derivatives


class Rows(NamedTuple):
    """Quadratic functions of all rows of S, with one curvature C.

    Attributes
    ----------
    value : sum of the functions
    slope : gradients a_i
    curved : ``C S_i``
    curvature : C, or its diagonal if C is diagonal
    """

    value: Float[Array, ""]
    slope: Float[Array, "tokens tokens"]
    curved: Float[Array, "tokens tokens"]
    curvature: Float[Array, "tokens tokens"] | Float[Array, " tokens"]


class Blocks(NamedTuple):
    """Value, gradients and blocks of the Hessian; queries of different tokens have no block."""

    value: Float[Array, ""]
    query: Float[Array, "tokens rank"]
    key: Float[Array, "tokens rank"]
    query_query: Float[Array, "tokens rank rank"]
    query_key: Float[Array, "tokens rank tokens rank"]
    key_key: Float[Array, "tokens rank tokens rank"]


def tied_attention_derivatives(
    x: Entries, length: int, rows: Callable[[Array], Rows]
) -> Derivatives:
    """Derivatives of ``rows(S)`` by X, queries and keys at once, flattened over the rank."""
    X = jnp.asarray(x).reshape(length, -1)
    blocks = _blocks(X, X, rows)
    hessian = _on_diagonal(blocks.query_query) + blocks.key_key
    hessian = hessian + blocks.query_key + jnp.transpose(blocks.query_key, (2, 3, 0, 1))
    size = X.size
    return Derivatives(
        blocks.value, (blocks.query + blocks.key).reshape(size), hessian.reshape(size, size)
    )


def untied_attention_derivatives(
    x: Entries, length: int, rows: Callable[[Array], Rows]
) -> Derivatives:
    """Derivatives of ``rows(S)`` by the columns of every token, first queries and then keys."""
    both = jnp.asarray(x).reshape(length, 2, -1)
    blocks = _blocks(both[:, 0], both[:, 1], rows)
    cross = blocks.query_key
    upper = jnp.stack([_on_diagonal(blocks.query_query), cross], axis=3)
    lower = jnp.stack([jnp.transpose(cross, (2, 3, 0, 1)), blocks.key_key], axis=3)
    hessian = jnp.stack([upper, lower], axis=1)
    gradient = jnp.stack([blocks.query, blocks.key], axis=1)
    return Derivatives(blocks.value, gradient.reshape(-1), hessian.reshape(both.size, both.size))


def _blocks(
    Q: Float[Array, "tokens rank"], K: Float[Array, "tokens rank"], rows: Callable[[Array], Rows]
) -> Blocks:
    length, rank = Q.shape
    S = jax.nn.softmax(Q @ K.T, axis=-1)
    value, slope, curved, curvature = rows(S)
    b = slope - jnp.sum(slope * S, axis=1, keepdims=True)
    G = S * b
    u = S * (curved + b - 0.5 * jnp.sum(curved * S, axis=1, keepdims=True))
    diagonal = G if curvature.ndim == 2 else G + S * S * curvature
    uK, SK, GK = jnp.split(jnp.concatenate([u, S, G]) @ K, 3)
    SQ, uQ = ((each[:, :, None] * Q[:, None]).reshape(length, -1) for each in (S, u))
    mixed = SQ.T @ uQ
    mixed = -(mixed + mixed.T)
    Y = diagonal[:, :, None] * K - S[:, :, None] * uK[:, None] - u[:, :, None] * SK[:, None]
    if curvature.ndim == 2:
        wide = jnp.repeat(jnp.repeat(curvature, rank, axis=0), rank, axis=1)
        mixed = mixed + wide * (SQ.T @ SQ)
        Y = Y + S[:, :, None] * jnp.einsum("jk,ika->ija", curvature, S[:, :, None] * K)
    square = (Q[:, :, None] * Q[:, None]).reshape(length, -1)
    same_key = (diagonal.T @ square).reshape(length, rank, rank)
    eye = jnp.eye(rank, dtype=Q.dtype)
    cross = jnp.swapaxes(Y, 1, 2)[..., None] * Q[:, None, None]
    return Blocks(
        value=value,
        query=GK,
        key=G.T @ Q,
        query_query=jnp.einsum("ija,jb->iab", Y, K),
        query_key=cross + G[:, None, :, None] * eye[:, None],
        key_key=_on_diagonal(same_key) + mixed.reshape(length, rank, length, rank),
    )


def _on_diagonal(
    blocks: Float[Array, "tokens rank rank"],
) -> Float[Array, "tokens rank tokens rank"]:
    """Block-diagonal matrix with these blocks."""
    same = jnp.eye(len(blocks), dtype=blocks.dtype)
    return blocks[:, :, None] * same[:, None, :, None]
