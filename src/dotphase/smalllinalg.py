"""Linear algebra on many tiny symmetric matrices at once.

The proximal map solves one Newton system of size ``length * student_rank`` for every
quadrature point. Batched LAPACK calls spend most of their time on bookkeeping at these
sizes, so up to `UNROLL_LIMIT` the factorisation is unrolled into elementwise operations,
which the compiler fuses over the batch.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

UNROLL_LIMIT = 8


def dot(a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, ""]:
    """``a . b``."""
    if a.shape[0] > UNROLL_LIMIT:
        return jnp.dot(a, b)
    return _total([a[i] * b[i] for i in range(a.shape[0])])


def matvec(matrix: Float[Array, "m n"], vector: Float[Array, " n"]) -> Float[Array, " m"]:
    """``matrix @ vector``."""
    if max(matrix.shape) > UNROLL_LIMIT:
        return matrix @ vector
    return jnp.stack([dot(matrix[i], vector) for i in range(matrix.shape[0])])


def trace(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """Sum of the diagonal."""
    if matrix.shape[0] > UNROLL_LIMIT:
        return jnp.trace(matrix)
    return _total([matrix[i, i] for i in range(matrix.shape[0])])


def largest(vector: Float[Array, " n"]) -> Float[Array, ""]:
    """Largest absolute entry."""
    if vector.shape[0] > UNROLL_LIMIT:
        return jnp.max(jnp.abs(vector))
    result = jnp.abs(vector[0])
    for i in range(1, vector.shape[0]):
        result = jnp.maximum(result, jnp.abs(vector[i]))
    return result


def _total(terms: list[Array]) -> Array:
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def _factorise(matrix: Float[Array, "n n"]) -> tuple[list[list[Array]], list[Array]]:
    """Factors of ``matrix = U^T D U``: rows of the unit upper triangle and the pivots."""
    size = matrix.shape[0]
    upper: list[list[Array]] = [[jnp.ones(())] * size for _ in range(size)]
    pivots: list[Array] = []
    for i in range(size):
        pivot = matrix[i, i] - sum(pivots[k] * upper[k][i] ** 2 for k in range(i))
        pivots.append(pivot)
        for j in range(i + 1, size):
            off = matrix[i, j] - sum(pivots[k] * upper[k][i] * upper[k][j] for k in range(i))
            upper[i][j] = off / pivot
    return upper, pivots


def is_positive_definite(matrix: Float[Array, "n n"]) -> Bool[Array, ""]:
    """Whether every pivot of the symmetric `matrix` is positive."""
    if matrix.shape[0] > UNROLL_LIMIT:
        return jnp.all(jnp.isfinite(jnp.linalg.cholesky(matrix)))
    _, pivots = _factorise(matrix)
    positive = pivots[0] > 0
    for pivot in pivots[1:]:
        positive = positive & (pivot > 0)
    return positive


def solve_symmetric(matrix: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve ``matrix @ x = right`` for one symmetric matrix with non-zero pivots."""
    size = matrix.shape[0]
    if size > UNROLL_LIMIT:
        return jnp.linalg.solve(matrix, right)
    upper, pivots = _factorise(matrix)
    x = [right[i] for i in range(size)]
    for i in range(size):
        for k in range(i):
            x[i] = x[i] - upper[k][i] * x[k]
    x = [x[i] / pivots[i] for i in range(size)]
    for i in reversed(range(size)):
        for k in range(i + 1, size):
            x[i] = x[i] - upper[i][k] * x[k]
    return jnp.stack(x)


def shifted_to_positive(
    matrix: Float[Array, "n n"], margin: Float[Array, ""]
) -> Float[Array, "n n"]:
    """`matrix` itself where it is positive definite, else shifted until it is.

    The shift is Gershgorin's bound on the smallest eigenvalue: larger than needed, never
    too small, and free of any eigenvalue computation.
    """
    size = matrix.shape[0]
    eye = jnp.eye(size, dtype=matrix.dtype)
    if size > UNROLL_LIMIT:
        diagonal = jnp.diagonal(matrix)
        bound = jnp.min(diagonal - (jnp.sum(jnp.abs(matrix), axis=1) - jnp.abs(diagonal)))
    else:
        off = [[jnp.abs(matrix[i, j]) for j in range(size) if j != i] for i in range(size)]
        rows = [matrix[i, i] - (_total(off[i]) if off[i] else 0.0) for i in range(size)]
        bound = rows[0]
        for row in rows[1:]:
            bound = jnp.minimum(bound, row)
    shift = jnp.where(is_positive_definite(matrix), 0.0, jnp.maximum(0.0, margin - bound))
    return matrix + shift * eye
