"""Overlaps of weights with the teacher, the positions and themselves at finite d."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.datasets import Positions, TeacherWeights, weighted_product
from dotphase.finite_d.loss import Weights
from dotphase.model import Model

#: Mechanisms that a student can have learned.
MECHANISMS = ("semantic", "positional", "mixed", "uninformed")
#: Instead of a mechanism, for weights that are not finite.
DIVERGED_RUN = "diverged"
#: Alignments above this multiple of 1/sqrt(d) count as learned; random weights have 1/sqrt(d).
DETECTION_FACTOR = 4.0


class TokenOverlaps(NamedTuple):
    """Overlaps of the first token, with their signs."""

    m: Float[Array, " r"]  #: ``Q^T p_1/sqrt d``
    theta: Float[Array, "r t"]  #: ``Q^T Sigma_1 Q*/d``
    q: Float[Array, "r r"]  #: ``Q^T Sigma_1 Q/d``


class Norms(NamedTuple):
    """Norms of the overlaps of the first token, and alignments of the weights."""

    #: norms of `TokenOverlaps`
    m: Float[Array, ""]
    theta: Float[Array, ""]
    q: Float[Array, ""]
    semantic_alignment: Float[Array, ""]  #: ``|Q^T Q*|/(|Q| |Q*|)``, in [0, 1]
    positional_alignment: Float[Array, ""]  #: ``m/sqrt(m^2 + q)``, in [0, 1]


def token_overlaps(
    model: Model, weights: Weights, teacher_weights: TeacherWeights, positions: Positions
) -> TokenOverlaps:
    """Return the overlaps of weights.

    Examples
    --------
    >>> model, training = dp.positional_semantic(), dp.custom_training
    >>> data = dp.sample(model, d=40, n=80, key=0, dtype="float32")
    >>> q = data.teacher_weights
    >>> training.token_overlaps(model, q, q, data.positions).theta.shape
    (1, 1)
    """
    return TokenOverlaps(
        m=weights.T @ positions[0] / np.sqrt(weights.shape[0]),
        theta=weighted_product(model, weights, teacher_weights),
        q=weighted_product(model, weights, weights),
    )


def overlap_norms(
    model: Model, weights: Weights, teacher_weights: TeacherWeights, positions: Positions
) -> Norms:
    """Return the norms of the overlaps of weights, and their alignments."""
    overlaps = token_overlaps(model, weights, teacher_weights, positions)
    m, theta, q = (jnp.linalg.norm(overlap) for overlap in overlaps)
    tiny = np.finfo(weights.dtype).tiny
    norms = jnp.linalg.norm(weights) * jnp.linalg.norm(teacher_weights)
    semantic_alignment = jnp.linalg.norm(weights.T @ teacher_weights) / (norms + tiny)
    return Norms(m, theta, q, semantic_alignment, positional_alignment(m, q))


def positional_alignment(m: Any, q: Any) -> Any:
    """Return ``m/sqrt(m^2 + q)`` of norms of overlaps; 0 for zero weights."""
    return m / ((m**2 + q) ** 0.5 + np.finfo(np.float32).tiny)


def mechanism_of(semantic_alignment: Any, positional_alignment: Any, d: int) -> str:
    """Return the mechanism of a student, one of `MECHANISMS`, from its two alignments.

    Alignments that are not finite are those of a student that has `DIVERGED_RUN`.
    Random weights have alignments of about ``1/sqrt d``.
    """
    alignments = {"semantic": semantic_alignment, "positional": positional_alignment}
    if not np.all(np.isfinite(list(alignments.values()))):
        return DIVERGED_RUN
    if min(alignments.values()) > 0.5:
        return "mixed"
    best = max(alignments, key=lambda name: alignments[name])
    return best if alignments[best] > DETECTION_FACTOR / d**0.5 else "uninformed"


def mechanisms_of(runs: Mapping[str, np.ndarray], d: int) -> np.ndarray:
    """Return the mechanisms of many students, from arrays of their two alignments."""
    classify = np.vectorize(lambda s, p: mechanism_of(s, p, d), otypes=["U16"])
    return np.asarray(classify(runs["semantic_alignment"], runs["positional_alignment"]))
