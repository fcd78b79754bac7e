"""Symmetries of models that the engines make use of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import jax
import numpy as np
from jaxtyping import Float

from dotphase.model.definition import Attention, Model
from dotphase.model.validation import call_many
from dotphase.runtime.memoize import memoize
from dotphase.runtime.precision import in_double_precision

#: Signs of the columns of Q, and of those of Q*.
Flip = tuple[Float[np.ndarray, " r"], Float[np.ndarray, " t"]]


@memoize(64)
@in_double_precision
def sign_flips(model: Model) -> list[Flip]:
    """The sign flips of columns of Q and of Q* that a model does not see; to flip nothing is one.

    Attention with the squared loss does not see those of its student together with those of its
    teacher. Any other loss is looked at as a whole: ``loss(X s, label(h* u))`` is the same as
    ``loss(X, label(h*))`` with the same noise, or with the opposite, which is as probable.
    Directions that are aligned with a column of the teacher fix its sign.
    """
    length, r, t = model.length, model.student_rank, model.teacher_rank
    if model.loss is None and not model.normals:
        students = unseen_signs(model.student, length, r)
        return list(product(students, unseen_signs(model.teacher, length, t)))
    rng = np.random.default_rng(1)
    x, h = (rng.standard_normal((8, length, rank)) for rank in (r, t))
    z = rng.standard_normal((8, model.normals))
    opposite = z * np.r_[-np.ones(model.noise), np.ones(model.normals - model.noise)]
    fixed = np.any(model.known, axis=0)
    value = _energies(model, x, h, z)
    return [
        (s, u)
        for s, u in product(_all_signs(r), _all_signs(t))
        if np.all(u[fixed] > 0) and any(_same(value, _energies(model, s * x, u * h, noise))
                                        for noise in (z, opposite))
    ]  # fmt: skip


def _energies(model: Model, *sentences: np.ndarray) -> np.ndarray:
    def one(x: jax.Array, h: jax.Array, z: jax.Array) -> jax.Array:
        return model.energy(x, model.label(h, z))

    return np.asarray(jax.jit(jax.vmap(one))(*sentences))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return np.allclose(one, other, rtol=1e-9, atol=1e-11)


def _all_signs(rank: int) -> Float[np.ndarray, "flips n"]:
    if rank > 6:  # all at once or none: 2^rank combinations would be too many to try
        return np.stack([np.ones(rank), -np.ones(rank)])
    return np.asarray(list(product((1.0, -1.0), repeat=rank)))


def turns(model: Model) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The turns of columns of Q, and of Q*, that a model does not see (`unseen_turns`)."""
    length, r, t = model.length, model.student_rank, model.teacher_rank
    if model.loss is None and not model.normals:
        return unseen_turns(model.student, length, r), unseen_turns(model.teacher, length, t)
    return _seen_by_none(model)


@memoize(64)
@in_double_precision
def _seen_by_none(model: Model) -> tuple[list[np.ndarray], list[np.ndarray]]:
    length, r, t = model.length, model.student_rank, model.teacher_rank
    rng = np.random.default_rng(1)
    x, h = (rng.standard_normal((8, length, rank)) for rank in (r, t))
    z = rng.standard_normal((8, model.normals))
    value = _energies(model, x, h, z)
    students = [a for turn, a in _turns(r) if _same(value, _energies(model, x @ turn, h, z))]
    if model.latent is not None and np.any(model.known):
        return students, []
    return students, [a for turn, a in _turns(t) if _same(value, _energies(model, x, h @ turn, z))]


@memoize(64)
@in_double_precision
def unseen_signs(function: Attention, length: int, rank: int) -> list[Float[np.ndarray, " n"]]:
    """The sign flips of columns that an attention function does not see."""
    signs = _all_signs(rank)
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
    for turn, small in _turns(rank):
        values = np.asarray(call_many(function, np.concatenate([h, h @ turn])))
        if _same(values[:8], values[8:]):
            found.append(small)
    return found


def _turns(rank: int) -> Iterator[tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]]:
    """Turns by one radian of every pair of columns, with their antisymmetric matrices."""
    for i, j in combinations(range(rank), 2):
        turn, small = np.eye(rank), np.zeros((rank, rank))
        turn[[i, i, j, j], [i, j, i, j]] = np.cos(1), np.sin(1), -np.sin(1), np.cos(1)
        small[i, j], small[j, i] = 1.0, -1.0
        yield turn, small
