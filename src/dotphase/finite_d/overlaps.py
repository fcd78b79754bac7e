"""Overlaps of weights with the teacher, the positions and themselves, measured at finite d."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.datasets import weighted_product
from dotphase.model import Model

#: What a student can have learned.
MECHANISMS = ("semantic", "positional", "mixed", "uninformed")
#: An alignment this many times what chance gives, 1/sqrt(d), counts as learned.
CHANCE = 4.0


class TokenOverlaps(NamedTuple):
    """Overlaps of the first token, with their signs.

    Attributes
    ----------
    m : ``Q^T p_1/sqrt d``
    theta : ``Q^T Sigma_1 Q*/d``
    q : ``Q^T Sigma_1 Q/d``
    """

    m: Float[Array, " r"]
    theta: Float[Array, "r t"]
    q: Float[Array, "r r"]


class Norms(NamedTuple):
    """Norms of the overlaps of the first token, and how well the weights are aligned.

    Attributes
    ----------
    m, theta, q : norms of `TokenOverlaps`
    semantic_alignment : ``|Q^T Q*|/(|Q| |Q*|)``, in [0, 1]
    positional_alignment : ``m/sqrt(m^2 + q)``, in [0, 1]
    """

    m: Float[Array, ""]
    theta: Float[Array, ""]
    q: Float[Array, ""]
    semantic_alignment: Float[Array, ""]
    positional_alignment: Float[Array, ""]


def token_overlaps(
    model: Model,
    weights: Float[Array, "d r"],
    teacher_weights: Float[Array, "d t"],
    positions: Float[Array, "tokens d"],
) -> TokenOverlaps:
    """Overlaps of given weights."""
    return TokenOverlaps(
        m=weights.T @ positions[0] / np.sqrt(weights.shape[0]),
        theta=weighted_product(model, weights, teacher_weights),
        q=weighted_product(model, weights, weights),
    )


def overlap_norms(
    model: Model,
    weights: Float[Array, "d r"],
    teacher_weights: Float[Array, "d t"],
    positions: Float[Array, "tokens d"],
) -> Norms:
    """Norms of the overlaps of given weights, and their alignments."""
    found = token_overlaps(model, weights, teacher_weights, positions)
    m, theta, q = (jnp.linalg.norm(part) for part in found)
    tiny = np.finfo(weights.dtype).tiny
    sizes = jnp.linalg.norm(weights) * jnp.linalg.norm(teacher_weights)
    along = jnp.linalg.norm(weights.T @ teacher_weights) / (sizes + tiny)
    return Norms(m, theta, q, along, positional_alignment(m, q))


def positional_alignment(m: Any, q: Any) -> Any:
    """``m/sqrt(m^2 + q)`` of norms of overlaps; 0 without a student."""
    return m / ((m**2 + q) ** 0.5 + np.finfo(np.float32).tiny)


def mechanism_of(semantic_alignment: Any, positional_alignment: Any, d: int) -> str:
    """What a student has learned, one of `MECHANISMS`, from its two alignments.

    Chance gives each of them a value of about ``1/sqrt d``.
    """
    aligned = {"semantic": semantic_alignment, "positional": positional_alignment}
    if min(aligned.values()) > 0.5:
        return "mixed"
    best = max(aligned, key=lambda name: aligned[name])
    return best if aligned[best] > CHANCE / d**0.5 else "uninformed"


def mechanisms_of(runs: Mapping[str, np.ndarray], d: int) -> np.ndarray:
    """`mechanism_of` of many students, from arrays of their two alignments."""
    judge = np.vectorize(lambda s, p: mechanism_of(s, p, d), otypes=["U16"])
    return np.asarray(judge(runs["semantic_alignment"], runs["positional_alignment"]))
