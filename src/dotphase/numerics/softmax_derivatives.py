"""Derivatives of losses of ``S = softmax(X X^T)`` by X in closed form, entry by entry.

The loss is a sum over tokens of quadratic functions of the rows of S. A shift of all scores does
not change a softmax, so row i is a function of the L - 1 differences

    z_ij = X_i . (X_j - X_i),   dz_ij = dX_i . w_ij + X_i . dX_j,   w_ij = X_j - 2 X_i,   j != i.

With a_i and C the gradient and the Hessian of its quadratic function, its derivatives in z are

    G_ij = S_ij b_ij,   b_ij = a_ij - S_i . a_i,
    M^i_jk = S_ij S_ik (C_jk - v_ij - v_ik + S_i C S_i) + delta_jk G_ij,   v_i = C S_i + b_i,

and the chain rule gives, with ``Y^i_j = sum_k M^i_jk w_ik`` (j, k != i throughout), for row i

    gradient:  sum_j G_ij w_ij at token i,   G_ij X_i at token j;
    Hessian:   sum_j (Y^i_j w_ij^T - 2 G_ij I) at (i, i),   Y^i_j X_i^T + G_ij I at (i, j),
               M^i_jk X_i X_i^T at (j, k).

The code is unrolled over all entries and therefore suits small sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.numerics.linalg import Entries, dot, total
from dotphase.numerics.taylor import Derivatives


class Row(NamedTuple):
    """A quadratic function of one row s of S.

    Attributes
    ----------
    value, slope : the function and its gradient a
    curved : ``C s``
    curvature : entries C_jk with ``j <= k``; missing entries are zero
    """

    value: Float[Array, ""]
    slope: Sequence[Array]
    curved: Sequence[Array]
    curvature: Mapping[tuple[int, int], Array]


class Terms:
    """Value, gradient and Hessian of a sum, collected term by term."""

    def __init__(self, size: int) -> None:
        self.values: list[Array] = []
        self.first: list[list[Array]] = [[] for _ in range(size)]
        self._second: dict[tuple[int, int], list[Array]] = {}

    def add_second(self, i: int, j: int, term: Array) -> None:
        """Add a term to an entry of the Hessian and to its transpose."""
        self._second.setdefault((min(i, j), max(i, j)), []).append(term)

    def derivatives(self) -> Derivatives:
        """The sums; entries of the Hessian without a term are zero."""
        order = range(len(self.first))
        gradient = tuple(total(terms) for terms in self.first)
        upper = {index: total(terms) for index, terms in self._second.items()}
        zero = jnp.zeros_like(gradient[0])
        rows = ((upper.get((min(i, j), max(i, j)), zero) for j in order) for i in order)
        return Derivatives(total(self.values), gradient, tuple(tuple(row) for row in rows))


def softmax_derivatives(
    x: Entries, length: int, row: Callable[[int, Sequence[Array]], Row]
) -> Derivatives:
    """Derivatives of ``sum_i row(i, S_i)`` by X, flattened over tokens and rank."""
    rank = len(x) // length
    X = [[x[i * rank + a] for a in range(rank)] for i in range(length)]
    tokens, columns = range(length), range(rank)
    sums = Terms(length * rank)

    def add(p: int, a: int, q: int, b: int, term: Array) -> None:
        sums.add_second(p * rank + a, q * rank + b, term)

    for i in tokens:
        others = [j for j in tokens if j != i]
        away = {j: [X[j][a] - X[i][a] for a in columns] for j in others}
        w = {j: [away[j][a] - X[i][a] for a in columns] for j in others}
        scores = {j: dot(X[i], away[j]) for j in others}
        value, G, M = through_softmax(i, scores, partial(row, i))
        sums.values.append(value)
        back = -2 * total([G[j] for j in others])
        for a in columns:
            sums.first[i * rank + a] += [G[j] * w[j][a] for j in others]
            add(i, a, i, a, back)
            for j in others:
                sums.first[j * rank + a].append(G[j] * X[i][a])
                add(i, a, j, a, G[j])
                y = total([M[j, k] * w[k][a] for k in others])
                for b in columns:
                    add(i, a, j, b, y * X[i][b])
                    if b >= a:
                        add(i, a, i, b, y * w[j][b])
        for a, b in product(columns, columns):
            square = X[i][a] * X[i][b]
            for j, k in product(others, others):
                if j * rank + a <= k * rank + b:
                    add(j, a, k, b, M[j, k] * square)
    return sums.derivatives()


def through_softmax(
    own: int, scores: Mapping[int, Array], function: Callable[[Sequence[Array]], Row]
) -> tuple[Array, dict[int, Array], dict[tuple[int, int], Array]]:
    """Value, gradient and Hessian of a function of a softmax; the score of index `own` is zero."""
    s = _softmax(own, scores)
    value, slope, curved, curvature = function(s)
    mean, spread = dot(slope, s), dot(curved, s)
    gradient, v = {}, {}
    for j in scores:
        b = slope[j] - mean
        gradient[j] = s[j] * b
        v[j] = curved[j] + b
    hessian = {}
    for j, k in combinations_with_replacement(scores, 2):
        inner = spread - v[j] - v[k]
        if (j, k) in curvature:
            inner = inner + curvature[j, k]
        entry = s[j] * s[k] * inner
        hessian[j, k] = hessian[k, j] = entry + gradient[j] if j == k else entry
    return value, gradient, hessian


def _softmax(own: int, scores: Mapping[int, Array]) -> list[Array]:
    """Softmax of `scores` and of a zero at the index `own`."""
    if len(scores) == 1:
        (score,) = scores.values()
        other = jax.nn.sigmoid(score)
        return [1 - other, other] if own == 0 else [other, 1 - other]
    top = jnp.zeros(())
    for score in scores.values():
        top = jnp.maximum(top, score)
    weight = {j: jnp.exp(score - top) for j, score in scores.items()}
    weight[own] = jnp.exp(-top)
    scale = 1 / total(list(weight.values()))
    return [weight[j] * scale for j in sorted(weight)]
