"""The paper's model for longer sentences.

Tokens come in K kinds, token l of kind ``l mod K``, and positions tell the kinds apart. The
positional part of the teacher prefers tokens of the same kind as the paper's does,

    A_kl proportional to .6 if k and l are of the same kind, .4 otherwise, rows summing to one,

and the encodings of the kinds are the corners of a simplex,

    p_k . p_l = 1 if k and l are of the same kind, -1/(K - 1) otherwise,   sum over kinds = 0.

With L = K = 2 both are the paper's. The scores of A form a matrix of rank K - 1: a tied student
of rank one can represent A exactly for two kinds at any length, but not for more.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dotphase import validate
from dotphase.model import Model
from dotphase.paper import MIXING, MixedTeacher, softmax_attention


def same_kind(length: int, kinds: int) -> Float[np.ndarray, "tokens tokens"]:
    """Whether two tokens are of the same kind: entries 1 or 0."""
    kind = np.arange(length) % kinds
    return (kind[:, None] == kind[None, :]).astype(np.float64)


def kind_mixing(length: int, kinds: int = 2) -> Float[np.ndarray, "tokens tokens"]:
    """The positional attention matrix A for L tokens of K kinds."""
    (own, other), _ = MIXING["standard"]
    weights = np.where(same_kind(length, kinds) > 0, own, other)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def kind_positions(length: int, kinds: int = 2) -> Float[np.ndarray, "tokens tokens"]:
    """Gram matrix of the positional encodings of L tokens of K kinds."""
    return (kinds * same_kind(length, kinds) - 1) / (kinds - 1)


def positional_semantic_length(
    length: int,
    omega: float = 0.3,
    sigma: float = 0.5,
    ridge: float = 0.01,
    kinds: int = 2,
    student_rank: int = 1,
) -> Model:
    """The paper's model for sentences of `length` tokens.

    Parameters
    ----------
    length : int
        Tokens L in a sentence, at least 2; 2 is `positional_semantic`.
    omega, sigma, ridge, student_rank
        As in `positional_semantic`.
    kinds : int
        Number K of kinds of positions, from 2 (even and odd tokens) to L (all different).
    """
    length = validate.whole("length", length, at_least=2)
    kinds = validate.whole("kinds", kinds, at_least=2, at_most=length)
    omega = validate.number("omega", omega, at_least=0, at_most=1)
    return Model(
        teacher=MixedTeacher(np.asarray(omega), kind_mixing(length, kinds)),
        student=softmax_attention,
        length=length,
        teacher_rank=1,
        student_rank=student_rank,
        sigma=validate.number("sigma", sigma, above=0),
        positions=kind_positions(length, kinds),
        ridge=ridge,
    )
