"""The model of the paper (arXiv:2402.03902): a teacher that mixes two mechanisms.

The paper has two tokens. Longer sentences have tokens of K kinds, token l of kind ``l mod K``;
tokens of one kind have the same position. The positional part of the teacher prefers tokens
of the same kind as the paper's does,

    A_kl proportional to .6 if k and l are of the same kind, .4 otherwise, rows summing to one,

and the encodings of the kinds are the corners of a simplex,

    p_k . p_l = 1 if k and l are of the same kind, -1/(K - 1) otherwise,   sum over kinds = 0.

With L = K = 2 both are the paper's. The scores of A form a matrix of rank K - 1: a tied student
of rank one can represent A exactly for two kinds at any length, but not for more.
"""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.model.attention import softmax_attention
from dotphase.model.definition import Model
from dotphase.model.mixing import MIXING, read_mixing
from dotphase.model.spectrum import Spectrum
from dotphase.model.untied import untied as untie


class MixedTeacher(eqx.Module):
    """Teacher ``T(h) = (1 - omega) softmax(h h^T) + omega A``."""

    #: Ranges of the numbers, see `dotphase.model.parameter_values`.
    ranges: ClassVar = {"omega": (0.0, 1.0)}

    omega: Float[np.ndarray, ""]
    mixing: Float[np.ndarray, "tokens tokens"]

    def __call__(self, h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
        return (1 - self.omega) * softmax_attention(h) + self.omega * self.mixing


def same_kind(length: int, kinds: int) -> Float[np.ndarray, "tokens tokens"]:
    """Matrix of ones for pairs of tokens of the same kind, zeros for the others."""
    kind = np.arange(length) % kinds
    return (kind[:, None] == kind[None, :]).astype(np.float64)


def kind_mixing(length: int, kinds: int = 2) -> Float[np.ndarray, "tokens tokens"]:
    """The positional attention matrix A for L tokens of K kinds."""
    (same, different), _ = MIXING["standard"]
    weights = np.where(same_kind(length, kinds) > 0, same, different)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def kind_positions(length: int, kinds: int = 2) -> Float[np.ndarray, "tokens tokens"]:
    """Gram matrix of the positional encodings of L tokens of K kinds."""
    return (kinds * same_kind(length, kinds) - 1) / (kinds - 1)


def positional_semantic(
    omega: float = 0.3,
    sigma: float = 0.5,
    ridge: float = 0.01,
    mixing: Any = "standard",
    student_rank: int = 1,
    length: int = 2,
    kinds: int = 2,
    untied: bool = False,
    spectrum: Spectrum | None = None,
) -> Model:
    """Make the model of the paper, or a variant of it.

    Parameters
    ----------
    omega : float in [0, 1]
        Weight of the positional part of the teacher: 0 is purely semantic.
    sigma : float
        Standard deviation of the entries of every token.
    ridge : float
        Penalty lambda.
    mixing : {"standard", "other"}, (L, L) array, or path of a JSON file
        The positional attention matrix A; "other" is for two tokens.
    student_rank : int
        Columns of the student's query/key matrix.
    length : int
        Tokens L in a sentence, at least 2; the paper has 2.
    kinds : int
        Number K of kinds of positions, from 2 (even and odd tokens) to L (all different).
    untied : bool
        True for a student with separate queries and keys, of `student_rank` columns each.
    spectrum : Spectrum, optional
        Shape of the covariance of the tokens; white, as in the paper, if not given.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.positional_semantic(omega=0.1, length=3).length
    3
    """
    length = validation.integer("length", length, at_least=2)
    kinds = validation.integer("kinds", kinds, at_least=2, at_most=length)
    omega = validation.number("omega", omega, at_least=0, at_most=1)
    is_standard = isinstance(mixing, str) and mixing == "standard"
    matrix = kind_mixing(length, kinds) if is_standard else read_mixing(mixing, length)
    model = Model(
        teacher=MixedTeacher(np.asarray(omega), matrix),
        student=softmax_attention,
        length=length,
        teacher_rank=1,
        student_rank=student_rank,
        sigma=validation.number("sigma", sigma, above=0),
        positions=kind_positions(length, kinds),
        ridge=ridge,
        spectrum=spectrum,
    )
    return untie(model, student_rank) if untied else model


def positional_semantic_length(length: int, omega: float = 0.3, **others: Any) -> Model:
    """Make the paper's model for sentences of `length` tokens, see `positional_semantic`.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.positional_semantic_length(4, kinds=4).positions.shape
    (4, 4)
    """
    return positional_semantic(omega, length=length, **others)
