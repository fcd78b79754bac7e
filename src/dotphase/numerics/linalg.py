"""Linear algebra on many tiny symmetric matrices at once.

The proximal map solves one Newton system of size ``length * student_rank`` for every
quadrature point. Up to `UNROLL_LIMIT` everything is unrolled into elementwise operations, which the
compiler fuses over the batch; above, rows are eliminated in a loop, so that compilation does not
grow with the size. Not by batched LAPACK calls: they spend most of their time on bookkeeping at
these sizes, and two of them in one program can wait for each other forever on two cores (jaxlib's
calls hold a thread of the pool that their parts are queued for).

Fused code stays fast only while each entry is an array of its own: stacking entries puts one
branch per entry into the innermost loop. Small vectors are therefore tuples of their entries
and small symmetric matrices tuples of their upper rows (`upper_rows`); large ones are arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

#: Largest size that is unrolled.
UNROLL_LIMIT = 4

#: A vector: its entries, or an array of them.
Entries = Sequence[Array] | Float[Array, " n"]
#: A symmetric matrix: rows from the diagonal on, or an array if it is large.
Symmetric = tuple[tuple[Array, ...], ...] | Float[Array, "n n"]


def parts(array: Any) -> Sequence[Array]:
    """Entries of a vector, or rows of a matrix.

    One operation unstacks an array: every index would be traced, differentiated and compiled alone.
    """
    return jnp.unstack(array) if isinstance(array, jax.Array) else array


def entries(vector: Any) -> Any:
    """Convert a small vector to the tuple of its entries, a large one to an array."""
    if len(vector) > UNROLL_LIMIT:
        return jnp.asarray(vector)
    return tuple(parts(vector))


def upper_rows(matrix: Any) -> Symmetric:
    """Convert a small symmetric matrix to the tuple of its upper rows, a large one to an array.

    `matrix` is an array or a sequence of rows.
    """
    size = len(matrix)
    if size > UNROLL_LIMIT:
        return jnp.asarray(matrix)
    return tuple(tuple(parts(row))[i:] for i, row in enumerate(parts(matrix)))


def dot(a: Entries, b: Entries) -> Float[Array, ""]:
    """``a . b``."""
    if len(a) > UNROLL_LIMIT:
        return jnp.dot(jnp.asarray(a), jnp.asarray(b))
    return total([left * right for left, right in zip(parts(a), parts(b), strict=True)])


def product(matrix: Any, vector: Entries) -> Any:
    """``matrix @ vector`` as entries; `matrix` is an array or a sequence of rows."""
    if max(len(matrix), len(vector)) > UNROLL_LIMIT:
        return jnp.asarray(matrix) @ jnp.asarray(vector)
    vector = parts(vector)
    return tuple(dot(row, vector) for row in parts(matrix))


def matvec(matrix: Float[Array, "m n"], vector: Float[Array, " n"]) -> Float[Array, " m"]:
    """``matrix @ vector`` as an array."""
    return jnp.asarray(product(matrix, vector))


def trace(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """Sum of the diagonal."""
    if len(matrix) > UNROLL_LIMIT:
        return jnp.trace(matrix)
    return total([parts(row)[i] for i, row in enumerate(parts(matrix))])


def largest(vector: Entries) -> Float[Array, ""]:
    """Largest absolute entry."""
    if len(vector) > UNROLL_LIMIT:
        return jnp.max(jnp.abs(jnp.asarray(vector)))
    return reduce(jnp.maximum, map(jnp.abs, parts(vector)))


def total(terms: Sequence[Array]) -> Array:
    """Sum of one or more terms."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def _factorize(upper: Any) -> tuple[list[list[Array]], list[list[Array]]]:
    """Factors of ``matrix = U^T D U``: rows of U right of the diagonal, and rows of ``D U``.

    Right-looking: each pivot row is subtracted from the remaining rows at once. Here and below,
    results that are used often end in a division: the compiler repeats cheap operations for every
    use, but not divisions.
    """
    remaining = [list(row) for row in upper]
    size = len(remaining)
    rows: list[list[Array]] = []
    for i in range(size):
        row = [entry / remaining[i][0] for entry in remaining[i][1:]]
        for j in range(i + 1, size):
            for k in range(j, size):
                remaining[j][k - j] = remaining[j][k - j] - row[j - i - 1] * remaining[i][k - i]
        rows.append(row)
    return rows, remaining


def _eliminate(rows: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Eliminate ``[A b]`` to ``[D U, D U A^{-1} b]`` with ``A = U^T D U``.

    The entries below the diagonal are rounding noise.
    """
    order = jnp.arange(len(rows))

    def step(i: Array, remaining: Array) -> Array:
        factor = jnp.where(order > i, remaining[:, i], 0.0) / remaining[i, i]
        return remaining - factor[:, None] * remaining[i]

    return jax.lax.fori_loop(0, len(rows) - 1, step, rows)


def _substitute(rows: Float[Array, "n k"]) -> Float[Array, "n k-n"]:
    """Solve ``U x = b`` for eliminated rows ``[U b]``."""
    size = len(rows)
    upper, right = rows[:, :size], rows[:, size:]

    def step(k: Array, x: Array) -> Array:
        i = size - 1 - k  # The entries before it are still zero.
        return x.at[i].set((right[i] - upper[i] @ x) / upper[i, i])

    return jax.lax.fori_loop(0, size, step, jnp.zeros_like(right))


def is_positive_definite(matrix: Symmetric) -> Bool[Array, ""]:
    """True if every pivot is positive."""
    if len(matrix) > UNROLL_LIMIT:
        return jnp.all(jnp.diagonal(_eliminate(jnp.asarray(matrix))) > 0)
    _, rows = _factorize(matrix)
    positive = rows[0][0] > 0
    for row in rows[1:]:
        positive = positive & (row[0] > 0)
    return positive


def solve_symmetric(matrix: Symmetric, right: Entries) -> Any:
    """Solve ``matrix @ x = right`` for one symmetric matrix with non-zero pivots."""
    size = len(matrix)
    if size > UNROLL_LIMIT:
        return solve_columns(jnp.asarray(matrix), jnp.asarray(right)[:, None])[:, 0]
    unit, rows = _factorize(matrix)
    x = list(parts(right))
    for i in range(size):
        for k in range(i):
            x[i] = x[i] - unit[k][i - k - 1] * x[k]
    for i in reversed(range(size)):
        for k in range(i + 1, size):
            x[i] = x[i] - rows[i][k - i] * x[k]
        x[i] = x[i] / rows[i][0]
    return tuple(x)


def solve_columns(matrix: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """`solve_symmetric` for one large matrix and many right sides."""
    return _substitute(_eliminate(jnp.concatenate([matrix, right], axis=1)))


def downhill(matrices: Any, right: Any, margin: Float[Array, ""], axis: int) -> Any:
    """`solve_symmetric` for many matrices; those that are not positive definite are shifted.

    Points lie on `axis` of every array. Large matrices are eliminated a second time only if some
    have to be shifted.
    """
    each = partial(jax.vmap, in_axes=axis, out_axes=axis)
    raised = partial(shifted_to_positive, margin=margin)
    if isinstance(matrices, tuple):
        return each(lambda matrix, b: solve_symmetric(raised(matrix), b))(matrices, right)

    def eliminated(stack: Any) -> Array:
        return each(lambda matrix, b: _eliminate(jnp.column_stack([matrix, b])))(stack, right)

    rows = eliminated(matrices)
    positive = jnp.all(each(jnp.diagonal)(rows) > 0)
    rows = jax.lax.cond(positive, lambda: rows, lambda: eliminated(each(raised)(matrices)))
    return each(lambda matrix: _substitute(matrix)[:, 0])(rows)


def inverses(matrices: Float[Array | np.ndarray, "... n n"]) -> Float[Array, "... n n"]:
    """Inverses of positive definite matrices."""
    size = matrices.shape[-1]
    if size == 1:
        return 1 / jnp.asarray(matrices)
    each = jnp.vectorize(solve_columns, signature="(n,n),(n,k)->(n,k)")
    return each(jnp.asarray(matrices), jnp.eye(size))


def shifted(matrix: Symmetric, by: Float[Array, ""]) -> Symmetric:
    """``matrix + by I``."""
    if isinstance(matrix, tuple):
        return tuple((row[0] + by, *row[1:]) for row in matrix)
    return matrix + by * jnp.eye(len(matrix), dtype=matrix.dtype)


def shifted_to_positive(matrix: Symmetric, margin: Float[Array, ""]) -> Symmetric:
    """Shift a matrix that is not positive definite by a multiple of the identity until it is.

    The shift follows from Gershgorin's bound on the smallest eigenvalue: larger than needed, never
    too small, and without computing eigenvalues.
    """
    if isinstance(matrix, tuple):
        size = len(matrix)
        off: list[list[Array]] = [[] for _ in range(size)]
        for i in range(size):
            for j in range(i + 1, size):
                size_ij = jnp.abs(matrix[i][j - i])
                off[i].append(size_ij)
                off[j].append(size_ij)
        rows = [matrix[i][0] - (total(off[i]) if off[i] else 0.0) for i in range(size)]
        bound = rows[0]
        for row in rows[1:]:
            bound = jnp.minimum(bound, row)
    else:
        diagonal = jnp.diagonal(matrix)
        bound = jnp.min(diagonal - (jnp.sum(jnp.abs(matrix), axis=1) - jnp.abs(diagonal)))
    # A division by infinity rather than a plain choice, see `_factorize`.
    divisor = jnp.where(is_positive_definite(matrix), jnp.inf, 1.0)
    return shifted(matrix, jnp.maximum(0.0, margin - bound) / divisor)


def matrix_sqrt(matrix: Float[Array | np.ndarray, "... n n"]) -> Float[Array, "... n n"]:
    """Symmetric square roots of symmetric positive semi-definite matrices."""
    if matrix.shape[-1] == 1:
        return jnp.sqrt(jnp.maximum(matrix, 0.0))
    values, vectors = jnp.linalg.eigh(matrix)
    roots = jnp.sqrt(jnp.maximum(values, 0.0))
    return (vectors * roots[..., None, :]) @ vectors.swapaxes(-1, -2)


def added(left: Any, right: Any) -> Any:
    """Sum of two vectors or of two symmetric matrices."""
    return jax.tree.map(jnp.add, left, right)


def subtracted(left: Any, right: Any) -> Any:
    """Difference of two vectors or of two symmetric matrices."""
    return jax.tree.map(jnp.subtract, left, right)
