"""Gradient descent on Gaussian matrices that are drawn only where they are looked at.

With ``w = Q/sqrt d``, tokens ``x_l = sigma_l Z_l`` (Z_l is n x d, its entries standard normal) and
``g_l = d ell/d h_l``, one step is

    h_l = sigma_l Z_l w + m_l,   m_l = p_l^T w,
    w <- w - lr (sum_l (sigma_l Z_l^T g_l + p_l 1^T g_l)/d + ridge w) (+ momentum).

The matrices enter through ``Z_l w`` and ``Z_l^T g_l`` alone. Given what has been seen of a Gaussian
matrix, the rest of it is a fresh one on the orthogonal complements (Bolthausen's conditioning; as
a way to simulate dynamics it is Y. M. Lu's "Householder dice", IEEE Trans. Inf. Theory 67, 2021).
Let ``a_s`` be an orthonormal basis of the weights seen so far (Q* included) and ``g_lj`` one of the
forces. Then what is known of the matrix is

    Z_l = sum_s xi_ls a_s^T + sum_j g_lj b_lj^T,

where xi_ls is a fresh normal n-vector orthogonal to the forces before it, and b_lj a fresh normal
d-vector orthogonal to the a_s before it. Nothing else of Z_l is ever needed, and no n x d matrix
exists. The d-vectors are coordinates in a basis that has one new direction for each b_lj: their
number grows with the steps, not with d.

Two laws of the fresh vectors are offered. The *exact* one is that of gradient descent at a given d
(on the loss of the limit, ``Model.energy``). In the *limit* b_lj is its new direction times its
length, and the xi are quasi-random at first and of length sqrt n: n sentences are then
points of an average, and the result is that of dynamical mean-field theory up to the error of
the average. ``sum_s xi_ls (a_s^T w)`` is its Gaussian field, ``sum_j g_lj (b_lj^T w)`` its
memory, and ``xi_ls^T g_l`` its responses, by integration by parts. Either way the steps are those
of gradient descent on matrices that could have been drawn, for which a stable step size is
stable: errors of the average are not fed back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.model import Model
from dotphase.numerics.proximal_map import vmap_points

#: Directions shorter than this many times the rounding error are none.
TINY = 64.0


class Beginning(NamedTuple):
    """Teacher, positions and first weights, in an orthonormal basis of all of them.

    Attributes
    ----------
    teacher, positions, weights : coordinates of ``Q*/sqrt d``, p and ``Q/sqrt d``
    free : one where the weights may move, zero where a symmetry forbids it
    """

    teacher: Float[Array, "t base"]
    positions: Float[Array, "tokens base"]
    weights: Float[Array, "r base"]
    free: Float[Array, "r base"]


class Rule(eqx.Module):
    """How to step.

    Attributes
    ----------
    exact : whether fresh vectors have the law of dimension d, or that of the limit
    batched : whether there are mini-batches
    d : dimension, n/alpha
    momentum : share of the last step that is added
    batch_fraction : share of the sentences in a mini-batch
    """

    exact: bool = eqx.field(static=True)
    batched: bool = eqx.field(static=True)
    d: Float[Array, ""]
    momentum: Float[Array, ""]
    batch_fraction: Float[Array, ""]


class Given(NamedTuple):
    """What a descent is given.

    Attributes
    ----------
    model, begun, rule : what is learned, from where, how
    points : fresh fields of the first steps; later ones are drawn
    lr : size of every step
    key : of everything that is drawn
    """

    model: Model
    begun: Beginning
    rule: Rule
    points: Float[Array, "first tokens r n"]
    lr: Float[Array, " room"]
    key: Array


class Records(NamedTuple):
    """What is noted at every step.

    Attributes
    ----------
    train_loss : per dimension
    gradient : norm of the gradient over sqrt d
    theta, m, C : ``Q^T Q*/d``, ``Q^T p_l/sqrt d``, ``Q^T Q/d``
    """

    train_loss: Float[Array, " steps"]
    gradient: Float[Array, " steps"]
    theta: Float[Array, "steps r t"]
    m: Float[Array, "steps tokens r"]
    C: Float[Array, "steps r r"]


class State(NamedTuple):
    """A descent under way; the lists have room for more steps, and what is unused is zero.

    Attributes
    ----------
    taken : steps
    weights, before : w now and one step ago, in coordinates
    right : the a_s
    fields : xi_ls, for each token
    left : g_lj, for each token
    images : b_lj
    target : label of every sentence
    records : what was noted
    """

    taken: Int[Array, ""]
    weights: Float[Array, "r dims"]
    before: Float[Array, "r dims"]
    right: Float[Array, "seen dims"]
    fields: tuple[Float[Array, "seen n"], ...]
    left: tuple[Float[Array, "forces n"], ...]
    images: tuple[Float[Array, "forces dims"], ...]
    target: Any
    records: Records


def extend(
    basis: Float[Array, "old n"], rows: Float[Array, "new n"]
) -> tuple[Float[Array, "new n"], Float[Array, "new old"]]:
    """The rows outside the span of an orthonormal basis, made orthonormal, and the components of
    the rows inside of it. A row that adds nothing becomes zero."""
    kind = basis.dtype
    rest, inside = rows.astype(kind), jnp.zeros((rows.shape[0], basis.shape[0]), kind)
    for _ in range(2):  # a second time, because rounding leaves something of the first
        along = _outer(rest, basis)
        rest, inside = rest - _mix(along, basis), inside + along
    found: list[Array] = []
    for row, whole in zip(rest, rows, strict=True):
        for other in found * 2:
            row = row - (other @ row) * other
        size = jnp.linalg.norm(row)
        kept = size > TINY * np.finfo(kind).eps * jnp.linalg.norm(whole)
        found.append(jnp.where(kept, row / jnp.where(kept, size, 1.0), 0.0))
    return jnp.stack(found), inside


def _outer(left: Float[Array, "i n"], right: Float[Array, "j n"]) -> Float[Array, "i j"]:
    """Inner products of all pairs of rows, in the precision of the right ones."""
    return jnp.einsum("in,jn->ij", left.astype(right.dtype), right, precision="highest")


def _mix(left: Float[Array, "i j"], right: Float[Array, "j n"]) -> Float[Array, "i n"]:
    """Combinations of rows, computed in the precision of the rows."""
    return jnp.matmul(left.astype(right.dtype), right, precision="highest")


def launch(
    model: Model,
    begun: Beginning,
    rule: Rule,
    teacher: Float[Array, "tokens t n"],
    noise: Float[Array, "normals n"],
    first: Float[Array, "tokens r n"],
    room: int,
    dtype: np.dtype,
) -> State:
    """The state before the first step, with room for so many; fields and noise are given."""
    t, r, length = model.teacher_rank, model.student_rank, model.length
    n, base = teacher.shape[-1], begun.weights.shape[1]
    dims = base + length * r * room
    wide = ((0, 0), (0, dims - base))
    weights = jnp.pad(begun.weights, wide)
    right = jnp.zeros((t + r * (room + 1), dims))
    shown, _ = extend(right, jnp.pad(begun.teacher, wide))
    right = right.at[:t].set(shown)
    sigma = jnp.asarray(model.sigma)[:, None, None]
    heads = jnp.einsum("ks,lsn->lkn", begun.teacher @ shown[:, :base].T, teacher)
    target = vmap_points(model.label)(sigma * heads, noise)
    left = tuple(jnp.zeros((r * room, n), dtype) for _ in range(length))
    fields = tuple(
        jnp.zeros((len(right), n), dtype).at[:t].set(rows.astype(dtype)) for rows in teacher
    )
    zero = jnp.zeros
    state = State(
        zero((), int), weights, weights, right, fields, left,
        tuple(zero((r * room, dims)) for _ in range(length)),
        target,
        Records(zero(room), zero(room), zero((room, r, t)), zero((room, length, r)),
                zero((room, r, r))),
    )  # fmt: skip
    return _look(rule, state, weights, first, t)


def widen(model: Model, state: State, room: int) -> State:
    """The same state with more room."""
    r, length = model.student_rank, model.length
    old = state.left[0].shape[0] // r
    more, dims = r * (room - old), length * r * (room - old)

    def pad(array: Array, rows: int, columns: int = 0) -> Array:
        return jnp.pad(array, ((0, rows), (0, columns)))

    return state._replace(
        weights=pad(state.weights, 0, dims),
        before=pad(state.before, 0, dims),
        right=pad(state.right, more, dims),
        fields=tuple(pad(part, more) for part in state.fields),
        left=tuple(pad(part, more) for part in state.left),
        images=tuple(pad(part, more, dims) for part in state.images),
        records=jax.tree.map(
            lambda part: jnp.pad(part, ((0, room - old), *[(0, 0)] * (part.ndim - 1))),
            state.records,
        ),
    )


def advance(given: Given, state: State, until: Int[Array, ""]) -> State:
    """Note and step until so many steps are noted."""

    def one(now: State) -> State:
        return _step(given, jax.random.fold_in(given.key, now.taken), now)

    return jax.lax.while_loop(lambda now: now.taken < until, one, state)


def _step(given: Given, key: Array, now: State) -> State:
    model, begun, rule, points, lr, _ = given
    r, length, ridge = model.student_rank, model.length, jnp.asarray(model.ridge)
    n, base = now.fields[0].shape[-1], begun.weights.shape[1]
    w, sigma = now.weights, jnp.asarray(model.sigma)
    for_batch, for_images, for_fields = jax.random.split(key, 3)

    m = begun.positions @ w[:, :base].T
    seen = w @ now.right.T
    h = jnp.stack([
        sigma[l] * (_mix(seen, now.fields[l]) + _mix(w @ now.images[l].T, now.left[l]))
        + m[l][:, None]
        for l in range(length)
    ])  # fmt: skip
    losses, force = vmap_points(jax.value_and_grad(model.energy))(h, now.target)
    loss = n / rule.d * jnp.mean(losses) + ridge / 2 * jnp.sum(w**2)
    if rule.batched:
        chosen = jax.random.permutation(for_batch, n) < rule.batch_fraction * n
        force = force * chosen / rule.batch_fraction

    known = (now.taken + 1) * r + model.teacher_rank
    gradient = ridge * w
    left, images = [], []
    for l in range(length):
        new, inside = extend(now.left[l], force[l])
        numbers = base + (now.taken * length + l) * r + jnp.arange(r)
        drawn = _images(rule, jax.random.fold_in(for_images, l), now.right, numbers, known)
        drawn = drawn * jnp.any(new != 0, axis=1, keepdims=True)
        along = _mix(inside, now.images[l]) + _outer(force[l], new).astype(w.dtype) @ drawn
        along = along + _outer(force[l], now.fields[l]).astype(w.dtype) @ now.right
        pull = jnp.sum(force[l], axis=1)[:, None] * begun.positions[l]
        gradient = gradient + (sigma[l] * along).at[:, :base].add(pull) / rule.d
        place = (now.taken * r, 0)
        left.append(jax.lax.dynamic_update_slice(now.left[l], new, place))
        images.append(jax.lax.dynamic_update_slice(now.images[l], drawn, place))
    gradient = gradient.at[:, :base].multiply(begun.free)
    weights = w - lr[now.taken] * gradient + rule.momentum * (w - now.before)

    noted = Records(loss, jnp.linalg.norm(gradient), w[:, :base] @ begun.teacher.T, m, w @ w.T)
    records = jax.tree.map(lambda all, one: all.at[now.taken].set(one), now.records, noted)
    state = now._replace(
        taken=now.taken + 1, weights=weights, before=w, left=tuple(left), images=tuple(images),
        records=records,
    )  # fmt: skip
    normal = jax.random.normal(for_fields, (length, r, n), w.dtype)
    ready = points[jnp.minimum(state.taken, len(points) - 1)]
    fresh = jnp.where(state.taken < len(points), ready, normal)
    return _look(rule, state, weights, fresh, known)


def _images(
    rule: Rule,
    key: Array,
    right: Float[Array, "seen dims"],
    numbers: Int[Array, " r"],
    known: Int[Array, ""],
) -> Float[Array, "r dims"]:
    """Fresh d-vectors orthogonal to the weights seen, each with a direction of its own."""
    places = jnp.arange(right.shape[1])
    own = (places == numbers[:, None]).astype(right.dtype)
    if not rule.exact:
        return jnp.sqrt(rule.d - known) * own
    normal = jax.random.normal(key, own.shape, right.dtype)
    others = jnp.where(places < numbers[:, None], normal, 0.0)
    others = others - (others @ right.T) @ right
    # The length in the d - k other dimensions, to relative order 1/d^2.
    across = jnp.sum(jnp.where(own > 0, normal, 0.0), axis=1, keepdims=True)
    return others + (jnp.sqrt(rule.d - numbers[:, None] - 0.5) + across / np.sqrt(2)) * own


def _look(
    rule: Rule,
    state: State,
    weights: Float[Array, "r dims"],
    fresh: Float[Array, "tokens r n"],
    place: Int[Array, ""] | int,
) -> State:
    """Let the matrices be seen along new weights, by fresh normal fields."""
    new, _ = extend(state.right, weights)
    present = jnp.any(new != 0, axis=1, keepdims=True)
    n, fields = fresh.shape[-1], []
    for drawn, seen, left in zip(fresh, state.fields, state.left, strict=True):
        xi = drawn.astype(seen.dtype)
        xi = xi - _mix(_outer(xi, left), left)
        if not rule.exact:
            xi = xi * (np.sqrt(n) / jnp.linalg.norm(xi, axis=1, keepdims=True))
        xi = (xi * present).astype(seen.dtype)
        fields.append(jax.lax.dynamic_update_slice(seen, xi, (place, 0)))
    right = jax.lax.dynamic_update_slice(state.right, new, (place, 0))
    return state._replace(right=right, fields=tuple(fields))
