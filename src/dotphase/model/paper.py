"""The model of the paper (arXiv:2402.03902): a teacher that mixes two mechanisms.

The paper has two tokens. For longer sentences tokens come in K kinds, token l of kind
``l mod K``, and positions tell the kinds apart. The positional part of the teacher prefers tokens
of the same kind as the paper's does,

    A_kl proportional to .6 if k and l are of the same kind, .4 otherwise, rows summing to one,

and the encodings of the kinds are the corners of a simplex,

    p_k . p_l = 1 if k and l are of the same kind, -1/(K - 1) otherwise,   sum over kinds = 0.

With L = K = 2 both are the paper's. The scores of A form a matrix of rank K - 1: a tied student
of rank one can represent A exactly for two kinds at any length, but not for more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics import validate
from dotphase.errors import InvalidInput
from dotphase.model.attention import softmax_attention
from dotphase.model.definition import Model
from dotphase.model.spectrum import Spectrum

#: Positional attention matrices A used in the paper, by name.
MIXING = {
    "standard": ((0.6, 0.4), (0.4, 0.6)),
    "other": ((0.3, 0.7), (0.8, 0.2)),
}

#: Gram matrix of opposite positional encodings of unit length, ``p_1 = -p_2``.
OPPOSITE = ((1.0, -1.0), (-1.0, 1.0))


class MixedTeacher(eqx.Module):
    """Teacher ``T(h) = (1 - omega) softmax(h h^T) + omega A``."""

    omega: Float[np.ndarray, ""]
    mixing: Float[np.ndarray, "tokens tokens"]

    def __call__(self, h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
        return (1 - self.omega) * softmax_attention(h) + self.omega * self.mixing


def read_mixing(mixing: Any) -> Float[np.ndarray, "2 2"]:
    """A positional attention matrix from a name, an array or a JSON file.

    Parameters
    ----------
    mixing : {"standard", "other"}, (2, 2) array, or path of a JSON file
        The file holds the matrix as a list of rows.
    """
    allowed = "must be standard, other, or a JSON file holding a 2 x 2 list of rows"
    value = mixing
    if isinstance(mixing, str) and mixing in MIXING:
        value = MIXING[mixing]
    elif isinstance(mixing, str | Path):
        if not str(mixing).endswith(".json"):
            raise InvalidInput("mixing", str(mixing), allowed)
        try:
            value = json.loads(Path(mixing).read_text(encoding="utf-8"))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InvalidInput("mixing", str(mixing), f"{allowed} ({reason})") from None
        except ValueError:
            raise InvalidInput("mixing", str(mixing), f"{allowed} (not valid JSON)") from None
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (2, 2) or not np.all(np.isfinite(matrix)):
        raise InvalidInput("mixing", value, "must be a 2 x 2 matrix of finite numbers")
    if np.any(matrix < 0) or not np.allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-8):
        raise InvalidInput(
            "mixing", matrix.tolist(), "must have entries >= 0 and rows that each sum to 1"
        )
    return matrix


def positional_semantic(
    omega: float = 0.3,
    sigma: float = 0.5,
    ridge: float = 0.01,
    mixing: Any = "standard",
    student_rank: int = 1,
    spectrum: Spectrum | None = None,
) -> Model:
    """The model of the paper.

    Parameters
    ----------
    omega : float in [0, 1]
        Weight of the positional part of the teacher: 0 is purely semantic.
    sigma : float
        Standard deviation of the entries of every token.
    ridge : float
        Penalty lambda.
    mixing : {"standard", "other"}, (2, 2) array, or path of a JSON file
        The positional attention matrix A.
    student_rank : int
        Columns of the student's query/key matrix.
    spectrum : Spectrum, optional
        Shape of the covariance of the tokens; white, as in the paper, if not given.
    """
    teacher = MixedTeacher(
        np.asarray(validate.number("omega", omega, at_least=0, at_most=1)), read_mixing(mixing)
    )
    return Model(
        teacher=teacher,
        student=softmax_attention,
        length=2,
        teacher_rank=1,
        student_rank=student_rank,
        sigma=validate.number("sigma", sigma, above=0),
        positions=OPPOSITE,
        ridge=ridge,
        spectrum=spectrum,
    )


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
