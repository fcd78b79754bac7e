"""Symmetries of columns of Q and Q*: sign flips, rotations, and columns that act alone."""

from collections.abc import Callable, Iterator
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
    """Sign flips of columns of Q and of Q* that leave a model unchanged, with the identity.

    Attention with the squared loss combines all flips of its student with all flips of its teacher.
    Any other loss is tested as a whole: ``loss(X s, label(h* u))`` must equal
    ``loss(X, label(h*))`` with the same noise, or with the opposite noise, which is as probable.
    Directions that are aligned with a column of the teacher fix its sign.
    """
    length, r, t = model.length, model.student_rank, model.teacher_rank
    if model.loss is None and not model.normals:
        students = sign_symmetries(model.student, length, r)
        return list(product(students, sign_symmetries(model.teacher, length, t)))
    rng = np.random.default_rng(1)
    x, h = (rng.standard_normal((8, length, rank)) for rank in (r, t))
    z = rng.standard_normal((8, model.normals))
    opposite = z * np.r_[-np.ones(model.noise), np.ones(model.normals - model.noise)]
    fixed = np.any(model.teacher_overlaps, axis=0)
    energies = _energies_of(model)
    value = energies(x, h, z)
    return [
        (s, u)
        for s, u in product(_all_signs(r), _all_signs(t))
        if np.all(u[fixed] > 0)
        and any(_same(value, energies(s * x, u * h, noise)) for noise in (z, opposite))
    ]


def _energies_of(model: Model) -> Callable[..., jax.Array]:
    """Compile the energies of many sentences."""

    def energy(x: jax.Array, h: jax.Array, z: jax.Array) -> jax.Array:
        return model.energy(x, model.label(h, z))

    return jax.jit(jax.vmap(energy))


def _same(left: jax.Array | np.ndarray, right: jax.Array | np.ndarray) -> bool:
    return np.allclose(left, right, rtol=1e-9, atol=1e-11)


def _all_signs(rank: int) -> Float[np.ndarray, "flips n"]:
    if rank > 6:  # All columns or none: there are too many combinations to test.
        return np.stack([np.ones(rank), -np.ones(rank)])
    return np.asarray(list(product((1.0, -1.0), repeat=rank)))


def rotations(model: Model) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Generators of the rotations of columns of Q, and of Q*, that leave a model unchanged."""
    length, r, t = model.length, model.student_rank, model.teacher_rank
    if model.loss is None and not model.normals:
        return rotation_symmetries(model.student, length, r), rotation_symmetries(
            model.teacher, length, t
        )
    return _rotations_of_loss(model)


@memoize(64)
@in_double_precision
def _rotations_of_loss(model: Model) -> tuple[list[np.ndarray], list[np.ndarray]]:
    length, r, t = model.length, model.student_rank, model.teacher_rank
    rng = np.random.default_rng(1)
    x, h = (rng.standard_normal((8, length, rank)) for rank in (r, t))
    z = rng.standard_normal((8, model.normals))
    energies = _energies_of(model)
    value = energies(x, h, z)
    students = [
        generator
        for rotation, generator in _plane_rotations(r)
        if _same(value, energies(x @ rotation, h, z))
    ]
    if model.latent is not None and np.any(model.teacher_overlaps):
        return students, []
    teachers = [
        generator
        for rotation, generator in _plane_rotations(t)
        if _same(value, energies(x, h @ rotation, z))
    ]
    return students, teachers


@memoize(64)
@in_double_precision
def positional_column(model: Model) -> int:
    """First column of Q whose alignment with the positions alone changes the student.

    In deep attention this is the last one: uniform attention hides all layers below it.
    """
    length, r = model.length, model.student_rank
    if r == 1 or model.student is None or model.latent is not None:
        return 0
    h = np.zeros((r + 1, length, r))  # The last sentence is without positions.
    h[np.arange(r), :, np.arange(r)] = np.linalg.eigh(np.asarray(model.positions))[1][:, -1]
    values = np.asarray(call_many(model.student, h))
    changes = ~np.isclose(values, values[-1], rtol=1e-9, atol=1e-11).all(axis=(1, 2))
    return int(np.argmax(changes))


@memoize(64)
@in_double_precision
def sign_symmetries(function: Attention, length: int, rank: int) -> list[Float[np.ndarray, " n"]]:
    """Sign flips of columns that leave an attention function unchanged."""
    signs = _all_signs(rank)
    h = np.random.default_rng(1).standard_normal((8, length, rank))
    flipped = (signs[:, None, None, :] * h).reshape(-1, length, rank)
    values = np.asarray(call_many(function, flipped)).reshape(len(signs), len(h), length, length)
    same = np.isclose(values, values[0], rtol=1e-9, atol=1e-11).all(axis=(1, 2, 3))
    return list(signs[same])


@in_double_precision
def rotation_symmetries(
    function: Attention, length: int, rank: int
) -> list[Float[np.ndarray, "n n"]]:
    """Rotations of two columns into each other that leave an attention function unchanged.

    Their generators are returned, antisymmetric matrices a: small rotations are ``1 + epsilon a``.
    """
    generators = []
    h = np.random.default_rng(1).standard_normal((8, length, rank))
    for rotation, generator in _plane_rotations(rank):
        values = np.asarray(call_many(function, np.concatenate([h, h @ rotation])))
        if _same(values[:8], values[8:]):
            generators.append(generator)
    return generators


def _plane_rotations(
    rank: int,
) -> Iterator[tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]]:
    """Rotations by one radian of every pair of columns, with their generators."""
    for i, j in combinations(range(rank), 2):
        rotation, generator = np.eye(rank), np.zeros((rank, rank))
        rotation[[i, i, j, j], [i, j, i, j]] = np.cos(1), np.sin(1), -np.sin(1), np.cos(1)
        generator[i, j], generator[j, i] = 1.0, -1.0
        yield rotation, generator
