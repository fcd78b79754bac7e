"""Derivatives of losses of ``S = softmax(h_Q h_K^T)`` by separate queries and keys.

As in `dotphase.numerics.softmax_derivatives`, row i of S is a function of the L - 1 score
differences

    z_ij = Q_i . (K_j - K_i),   dz_ij = dQ_i . (K_j - K_i) + Q_i . dK_j - Q_i . dK_i,   j != i,

with queries Q_i and keys K_i of the projected tokens. With G and M the gradient and the Hessian
of the loss in z, its gradient is ``sum_j G_ij dz_ij`` and its Hessian

    sum_jk M^i_jk dz_ij dz_ik + sum_j 2 G_ij dQ_i . (dK_j - dK_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from jaxtyping import Array

from dotphase.numerics.linalg import Entries, dot, total
from dotphase.numerics.softmax_derivatives import Row, Terms, through_softmax
from dotphase.numerics.taylor import Derivatives


def untied_derivatives(
    x: Entries, length: int, row: Callable[[int, Sequence[Array]], Row]
) -> Derivatives:
    """Derivatives of ``sum_i row(i, S_i)`` by the projected tokens, flattened over columns."""
    columns = len(x) // length
    rank = columns // 2
    parts, sums = range(rank), Terms(len(x))
    first, add = sums.first, sums.add_second

    def query(i: int, a: int) -> int:
        return i * columns + a

    def key(i: int, a: int) -> int:
        return i * columns + rank + a

    for i in range(length):
        others = [j for j in range(length) if j != i]
        Q = [x[query(i, a)] for a in parts]
        away = {j: [x[key(j, a)] - x[key(i, a)] for a in parts] for j in others}
        value, G, M = through_softmax(i, {j: dot(Q, away[j]) for j in others}, partial(row, i))
        sums.values.append(value)
        back = -total([G[j] for j in others])
        # The gradient of z_ij has three blocks: away_j at Q_i, Q_i at K_j and -Q_i at K_i. The sums
        # over j and k come before the products with the blocks.
        rows = {j: total([M[j, k] for k in others]) for j in others}
        both = total(list(rows.values()))
        bent = {j: [total([M[j, k] * away[k][a] for k in others]) for a in parts] for j in others}
        for a in parts:
            first[query(i, a)] += [G[j] * away[j][a] for j in others]
            first[key(i, a)].append(back * Q[a])
            add(query(i, a), key(i, a), back)
            for j in others:
                first[key(j, a)].append(G[j] * Q[a])
                add(query(i, a), key(j, a), G[j])
            for b in parts:
                square = Q[a] * Q[b]
                add(query(i, a), key(i, b), -total([bent[j][a] for j in others]) * Q[b])
                if b >= a:
                    bend = total([bent[j][a] * away[j][b] for j in others])
                    add(query(i, a), query(i, b), bend)
                    add(key(i, a), key(i, b), both * square)
                for j in others:
                    add(query(i, a), key(j, b), bent[j][a] * Q[b])
                    add(key(i, a), key(j, b), -rows[j] * square)
                    for k in others:
                        if key(j, a) <= key(k, b):
                            add(key(j, a), key(k, b), M[j, k] * square)
    # No row depends on queries of two tokens: their entries are zero.
    return sums.derivatives()
