"""Symmetries of attention functions that the engines make use of."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from jaxtyping import Float

from dotphase._numerics.precision import in_double_precision
from dotphase._numerics.remember import remembered
from dotphase.model.definition import Attention, call_many


@remembered(64)
@in_double_precision
def unseen_signs(function: Attention, length: int, rank: int) -> list[Float[np.ndarray, " n"]]:
    """The sign flips of columns that an attention function does not see."""
    if rank > 6:  # all at once or none: 2^rank combinations would be too many to try
        signs = np.stack([np.ones(rank), -np.ones(rank)])
    else:
        signs = np.asarray(list(product((1.0, -1.0), repeat=rank)))
    h = np.random.default_rng(1).standard_normal((8, length, rank))
    flipped = (signs[:, None, None, :] * h).reshape(-1, length, rank)
    values = np.asarray(call_many(function, flipped)).reshape(len(signs), len(h), length, length)
    same = np.isclose(values, values[0], rtol=1e-9, atol=1e-11).all(axis=(1, 2, 3))
    return list(signs[same])


@in_double_precision
def unseen_turns(function: Attention, length: int, rank: int) -> list[Float[np.ndarray, "n n"]]:
    """The turns of two columns into each other that an attention function does not see.

    As antisymmetric matrices a: small turns are ``1 + epsilon a``.
    """
    found = []
    h = np.random.default_rng(1).standard_normal((8, length, rank))
    for i, j in combinations(range(rank), 2):
        turn, small = np.eye(rank), np.zeros((rank, rank))
        turn[[i, i, j, j], [i, j, i, j]] = np.cos(1), np.sin(1), -np.sin(1), np.cos(1)
        small[i, j], small[j, i] = 1.0, -1.0
        values = np.asarray(call_many(function, np.concatenate([h, h @ turn])))
        if np.allclose(values[:8], values[8:], rtol=1e-9, atol=1e-11):
            found.append(small)
    return found
