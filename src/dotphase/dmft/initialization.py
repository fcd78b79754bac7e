"""Where a descent begins, as the kernel wants it: coordinates, and what symmetry keeps at zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.dmft.kernel import Beginning
from dotphase.finite_d.datasets import position_vectors
from dotphase.finite_d.initialization import (
    StartComponents,
    StartFunction,
    initial_weights,
    position_modes,
)
from dotphase.finite_d.prng_keys import Purpose
from dotphase.model import Model
from dotphase.model.symmetry import sign_flips


def in_the_limit(model: Model, parts: StartComponents) -> Beginning:
    """Q*, the positions and the rest of the start are orthogonal to each other."""
    t, r = model.teacher_rank, model.student_rank
    factor = position_modes(model)
    modes = factor.shape[1]
    values, vectors = np.linalg.eigh(parts.rest)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    along = parts.m @ np.linalg.pinv(factor).T
    return Beginning(
        teacher=jnp.asarray(np.eye(t, t + modes + r)),
        positions=jnp.asarray(np.pad(factor, ((0, 0), (t, r)))),
        weights=jnp.asarray(np.concatenate([parts.theta, along, root], axis=1)),
        free=jnp.asarray(free_directions(model, parts, modes)),
    )


def free_directions(
    model: Model, parts: StartComponents, modes: int
) -> Float[np.ndarray, "r base"]:
    """Zero for overlaps that a symmetry of the start keeps at zero for ever.

    Where the student does not see a change of sign of some of its columns, nor the teacher one of
    its own, and the start is the same after both, all later weights are as well.
    """
    t, r = model.teacher_rank, model.student_rank
    theta, m = np.ones((r, t)), np.ones(r)
    for s, s_star in sign_flips(model):
        changed = StartComponents(
            parts.theta * np.outer(s, s_star), parts.m * s[:, None], parts.rest * np.outer(s, s)
        )
        if all(np.array_equal(one, other) for one, other in zip(changed, parts, strict=True)):
            theta[np.outer(s, s_star) < 0] = 0.0
            m[s < 0] = 0.0
    return np.concatenate([theta, np.repeat(m[:, None], modes, axis=1), np.ones((r, r))], axis=1)


def at_dimension(model: Model, start: StartFunction, d: int, key: Array) -> Beginning:
    """Drawn at finite d, as for `dotphase.train`: coordinates by orthonormalising the vectors."""
    for_weights, _ = jax.random.split(key)
    positions = jnp.asarray(position_vectors(model, d))
    teacher = jax.random.normal(for_weights, (d, model.teacher_rank))
    weights = initial_weights(model, start, Purpose.START.of(key), teacher, positions)
    modes = jnp.asarray(np.linalg.pinv(position_modes(model))) @ positions
    vectors = jnp.concatenate([teacher / np.sqrt(d), modes.T, weights / np.sqrt(d)], axis=1)
    basis = jnp.linalg.qr(vectors)[0]
    return Beginning(
        teacher=(basis.T @ teacher).T / np.sqrt(d),
        positions=positions @ basis,
        weights=(basis.T @ weights).T / np.sqrt(d),
        free=jnp.ones((model.student_rank, basis.shape[1])),
    )
