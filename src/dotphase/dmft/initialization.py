"""Initializations of the conditioned descent: coordinates of the weights, and zeros by symmetry."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.dmft.conditioned_descent import Initialization
from dotphase.finite_d.datasets import draw_teacher, position_vectors
from dotphase.finite_d.initialization import (
    StartComponents,
    StartFunction,
    initial_weights,
    position_modes,
)
from dotphase.finite_d.prng_keys import Purpose
from dotphase.model import Model
from dotphase.model.symmetry import sign_flips


def limit_initialization(model: Model, parts: StartComponents) -> Initialization:
    """Coordinates in the limit, where Q*, the positions and the rest of Q are orthogonal."""
    t, r = model.teacher_rank, model.student_rank
    factor = position_modes(model)
    modes = factor.shape[1]
    values, vectors = np.linalg.eigh(parts.orthogonal)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    components = parts.m @ np.linalg.pinv(factor).T
    return Initialization(
        teacher=jnp.asarray(np.eye(t, t + modes + r)),
        positions=jnp.asarray(np.pad(factor, ((0, 0), (t, r)))),
        weights=jnp.asarray(np.concatenate([parts.theta, components, root], axis=1)),
        free=jnp.asarray(free_directions(model, parts, modes)),
    )


def warn_if_fixed(free: Float[Array | np.ndarray, "r base"]) -> None:
    """Warn if symmetry keeps all overlaps with the teacher and the positions at zero."""
    if not np.any(free[:, : -len(free)]):
        text = "theta and m of this start stay zero in the limit of large d, by symmetry"
        warnings.warn(f"{text}; they grow at finite d: give d", stacklevel=5)


def free_directions(
    model: Model, parts: StartComponents, modes: int
) -> Float[np.ndarray, "r base"]:
    """Mask of the coordinates that may change: 0 for overlaps that a symmetry keeps at zero.

    A change of sign of some columns of Q and Q* is a symmetry if it changes neither student nor
    teacher. If it does not change the initial weights either, it changes no later ones.
    """
    t, r = model.teacher_rank, model.student_rank
    theta, m = np.ones((r, t)), np.ones(r)
    for s, s_star in sign_flips(model):
        flipped = StartComponents(
            parts.theta * np.outer(s, s_star),
            parts.m * s[:, None],
            parts.orthogonal * np.outer(s, s),
        )
        if all(map(np.array_equal, flipped, parts)):
            theta[np.outer(s, s_star) < 0] = 0.0
            m[s < 0] = 0.0
    return np.concatenate([theta, np.repeat(m[:, None], modes, axis=1), np.ones((r, r))], axis=1)


def finite_d_initialization(
    model: Model, start: StartFunction, d: int, key: Array, teacher_norm: str = "fixed"
) -> Initialization:
    """Draw the vectors at finite d, as `dotphase.train` does, and orthonormalize them."""
    weight_key, _ = jax.random.split(key)
    positions = jnp.asarray(position_vectors(model, d))
    teacher = draw_teacher(model, weight_key, positions, teacher_norm)
    weights = initial_weights(model, start, Purpose.START.of(key), teacher, positions)
    modes = jnp.asarray(np.linalg.pinv(position_modes(model))) @ positions
    vectors = jnp.concatenate([teacher / np.sqrt(d), modes.T, weights / np.sqrt(d)], axis=1)
    basis = jnp.linalg.qr(vectors)[0]
    return Initialization(
        teacher=(basis.T @ teacher).T / np.sqrt(d),
        positions=positions @ basis,
        weights=(basis.T @ weights).T / np.sqrt(d),
        free=jnp.ones((model.student_rank, basis.shape[1])),
    )
