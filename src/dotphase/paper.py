"""The model of the paper (arXiv:2402.03902): two tokens, a teacher that mixes two mechanisms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase import validate
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.smalllinalg import dot
from dotphase.spectrum import Spectrum

#: Positional attention matrices A used in the paper, by name.
MIXING = {
    "standard": ((0.6, 0.4), (0.4, 0.6)),
    "other": ((0.3, 0.7), (0.8, 0.2)),
}

#: Longest sentence whose attention is written out entry by entry.
UNROLL_LIMIT = 4

#: Gram matrix of opposite positional encodings of unit length, ``p_1 = -p_2``.
OPPOSITE = ((1.0, -1.0), (-1.0, 1.0))


def softmax_attention(h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
    """Tied dot-product attention, ``softmax(h h^T)`` row by row."""
    return dot_product_attention(h, h)


def dot_product_attention(
    queries: Float[Array, "tokens rank"], keys: Float[Array, "tokens rank"]
) -> Float[Array, "tokens tokens"]:
    """``softmax(queries keys^T)`` row by row."""
    tokens = queries.shape[0]
    if tokens > UNROLL_LIMIT:
        return jax.nn.softmax(queries @ keys.T, axis=-1)
    # Written out entry by entry, a handful of tokens compiles to straight code that is
    # several times faster over many points than a batch of tiny matrix products.
    score = [[dot(queries[i], keys[j]) for j in range(tokens)] for i in range(tokens)]
    return jnp.stack([jnp.stack(_softmax(row)) for row in score])


def _softmax(row: list[Array]) -> list[Array]:
    top = row[0]
    for entry in row[1:]:
        top = jnp.maximum(top, entry)
    top = jax.lax.stop_gradient(top)
    weight = [jnp.exp(entry - top) for entry in row]
    total = weight[0]
    for entry in weight[1:]:
        total = total + entry
    return [entry / total for entry in weight]


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
