"""Gradient descent on Gaussian matrices, of which only the products it uses are drawn.

With ``w = Q/sqrt d``, tokens ``x_l = sigma_l Z_l`` (Z_l is n x d, its entries standard normal) and
forces ``g_l = d ell/d h_l``, one step is

    h_l = sigma_l Z_l w + m_l,   m_l = p_l^T w,
    w <- w - lr (sum_l (sigma_l Z_l^T g_l + p_l 1^T g_l)/d + ridge w) (+ momentum).

The matrices enter through ``Z_l w`` and ``Z_l^T g_l`` alone. Conditioned on such products, the rest
of a Gaussian matrix is an independent one on the orthogonal complements (Bolthausen's conditioning;
Y. M. Lu uses it to simulate dynamics: "Householder dice", IEEE Trans. Inf. Theory 67, 2021).
Let ``a_s`` be an orthonormal basis of the weights so far (Q* included) and ``g_lj`` an orthonormal
basis of the forces so far. Then the part of the matrix that is drawn is

    Z_l = sum_s xi_ls a_s^T + sum_j g_lj b_lj^T,

where xi_ls is a fresh normal n-vector orthogonal to the earlier forces, and b_lj a fresh normal
d-vector orthogonal to the earlier a_s. No n x d matrix exists. The d-vectors are coordinates in a
basis that gains one direction for each b_lj: their number grows with the steps, not with d.

The fresh vectors follow one of two laws. The *exact* law is that of gradient descent at a given d
(on the loss of the limit, ``Model.energy``). In the *limit*, b_lj is its new direction times its
length, and the xi are quasi-random at first and have length sqrt n. The n sentences are then
points of an average, and the result is that of dynamical mean-field theory up to the error of
the average: ``sum_s xi_ls (a_s^T w)`` is its Gaussian field, ``sum_j g_lj (b_lj^T w)`` its
memory, and ``xi_ls^T g_l`` gives its responses by integration by parts. Under both laws the steps
are those of gradient descent on matrices that could have been drawn. A step size that is stable
there is stable here, because errors of the average are not fed back.
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

#: Shortest new direction, in units of the rounding error of its row.
MIN_LENGTH = 64.0


class Initialization(NamedTuple):
    """Teacher, positions and first weights, in an orthonormal basis of all of them.

    Attributes
    ----------
    teacher, positions, weights : coordinates of ``Q*/sqrt d``, p and ``Q/sqrt d``
    free : mask of the coordinates that may change; 0 where a symmetry forbids it
    """

    teacher: Float[Array, "t base"]
    positions: Float[Array, "tokens base"]
    weights: Float[Array, "r base"]
    free: Float[Array, "r base"]


class UpdateRule(eqx.Module):
    """Constants of a gradient step.

    Attributes
    ----------
    exact : True for the law of dimension d, False for that of the limit
    batched : True for mini-batches
    d : dimension, n/alpha
    momentum : momentum coefficient
    batch_fraction : size of a mini-batch over the number of sentences
    """

    exact: bool = eqx.field(static=True)
    batched: bool = eqx.field(static=True)
    d: Float[Array, ""]
    momentum: Float[Array, ""]
    batch_fraction: Float[Array, ""]


class Inputs(NamedTuple):
    """Arguments of a descent that are the same at every step.

    Attributes
    ----------
    model, initial, rule : model, initialization and constants of a step
    first_fields : fresh fields of the first steps; later ones are drawn
    lr : size of every step
    key : key of all random numbers
    """

    model: Model
    initial: Initialization
    rule: UpdateRule
    first_fields: Float[Array, "first tokens r n"]
    lr: Float[Array, " capacity"]
    key: Array


class Records(NamedTuple):
    """Quantities recorded at every step.

    Attributes
    ----------
    train_loss : training loss per dimension
    gradient : norm of the gradient over sqrt d
    theta, m, C : ``Q^T Q*/d``, ``Q^T p_l/sqrt d``, ``Q^T Q/d``
    """

    train_loss: Float[Array, " steps"]
    gradient: Float[Array, " steps"]
    theta: Float[Array, "steps r t"]
    m: Float[Array, "steps tokens r"]
    C: Float[Array, "steps r r"]


class State(NamedTuple):
    """State of a descent; arrays over steps have a capacity, and unused rows are zero.

    Attributes
    ----------
    steps : number of recorded steps
    weights, previous : coordinates of w after the last step and before it
    weight_basis : the a_s
    fields : xi_ls, for each token
    force_basis : g_lj, for each token
    images : b_lj, for each token
    target : label of every sentence
    records : quantities of the recorded steps
    """

    steps: Int[Array, ""]
    weights: Float[Array, "r dims"]
    previous: Float[Array, "r dims"]
    weight_basis: Float[Array, "directions dims"]
    fields: tuple[Float[Array, "directions n"], ...]
    force_basis: tuple[Float[Array, "forces n"], ...]
    images: tuple[Float[Array, "forces dims"], ...]
    target: Any
    records: Records


def extend_basis(
    basis: Float[Array, "old n"], rows: Float[Array, "new n"]
) -> tuple[Float[Array, "new n"], Float[Array, "new old"]]:
    """Orthonormalize rows against a basis; return the new directions and the components inside.

    A row within the span of the basis and the earlier rows gives a zero direction.
    """
    dtype = basis.dtype
    rest, inside = rows.astype(dtype), jnp.zeros((rows.shape[0], basis.shape[0]), dtype)
    for _ in range(2):  # the second pass removes the rounding error of the first
        components = _inner(rest, basis)
        rest, inside = rest - _combine(components, basis), inside + components
    directions: list[Array] = []
    for remainder, row in zip(rest, rows, strict=True):
        for direction in directions * 2:
            remainder = remainder - (direction @ remainder) * direction
        length = jnp.linalg.norm(remainder)
        is_new = length > MIN_LENGTH * np.finfo(dtype).eps * jnp.linalg.norm(row)
        directions.append(jnp.where(is_new, remainder / jnp.where(is_new, length, 1.0), 0.0))
    return jnp.stack(directions), inside


def _inner(left: Float[Array, "i n"], right: Float[Array, "j n"]) -> Float[Array, "i j"]:
    """Inner products of all pairs of rows, in the precision of the right ones."""
    return jnp.einsum("in,jn->ij", left.astype(right.dtype), right, precision="highest")


def _combine(coefficients: Float[Array, "i j"], rows: Float[Array, "j n"]) -> Float[Array, "i n"]:
    """Linear combinations of rows, in the precision of the rows."""
    return jnp.matmul(coefficients.astype(rows.dtype), rows, precision="highest")


def initial_state(
    model: Model,
    initial: Initialization,
    rule: UpdateRule,
    teacher_fields: Float[Array, "tokens t n"],
    noise: Float[Array, "normals n"],
    student_fields: Float[Array, "tokens r n"],
    capacity: int,
    dtype: np.dtype,
) -> State:
    """Build the state before the first step, with arrays for `capacity` steps."""
    t, r, length = model.teacher_rank, model.student_rank, model.length
    n, base = teacher_fields.shape[-1], initial.weights.shape[1]
    dims = base + length * r * capacity
    padding = ((0, 0), (0, dims - base))
    weights = jnp.pad(initial.weights, padding)
    weight_basis = jnp.zeros((t + r * (capacity + 1), dims))
    directions, _ = extend_basis(weight_basis, jnp.pad(initial.teacher, padding))
    weight_basis = weight_basis.at[:t].set(directions)
    sigma = jnp.asarray(model.sigma)[:, None, None]
    components = initial.teacher @ directions[:, :base].T
    heads = jnp.einsum("ks,lsn->lkn", components, teacher_fields)
    zero = jnp.zeros
    state = State(
        steps=zero((), int),
        weights=weights,
        previous=weights,
        weight_basis=weight_basis,
        fields=tuple(
            zero((len(weight_basis), n), dtype).at[:t].set(rows.astype(dtype))
            for rows in teacher_fields
        ),
        force_basis=tuple(zero((r * capacity, n), dtype) for _ in range(length)),
        images=tuple(zero((r * capacity, dims)) for _ in range(length)),
        target=vmap_points(model.label)(sigma * heads, noise),
        records=Records(
            zero(capacity), zero(capacity), zero((capacity, r, t)), zero((capacity, length, r)),
            zero((capacity, r, r)),
        ),
    )  # fmt: skip
    return _condition(rule, state, weights, student_fields, t)


def enlarge(model: Model, state: State, capacity: int) -> State:
    """Pad the arrays of a state to a larger capacity."""
    r, length = model.student_rank, model.length
    old = state.force_basis[0].shape[0] // r
    rows, dims = r * (capacity - old), length * r * (capacity - old)

    def pad(array: Array, rows: int, columns: int = 0) -> Array:
        return jnp.pad(array, ((0, rows), (0, columns)))

    return state._replace(
        weights=pad(state.weights, 0, dims),
        previous=pad(state.previous, 0, dims),
        weight_basis=pad(state.weight_basis, rows, dims),
        fields=tuple(pad(part, rows) for part in state.fields),
        force_basis=tuple(pad(part, rows) for part in state.force_basis),
        images=tuple(pad(part, rows, dims) for part in state.images),
        records=jax.tree.map(
            lambda part: jnp.pad(part, ((0, capacity - old), *[(0, 0)] * (part.ndim - 1))),
            state.records,
        ),
    )


def advance(inputs: Inputs, state: State, until: Int[Array, ""]) -> State:
    """Take steps until `until` of them are recorded."""

    def take_step(state: State) -> State:
        return _step(inputs, jax.random.fold_in(inputs.key, state.steps), state)

    return jax.lax.while_loop(lambda state: state.steps < until, take_step, state)


def _step(inputs: Inputs, key: Array, state: State) -> State:
    """Record the quantities of the current weights and take one gradient step."""
    model, initial, rule, first_fields, lr, _ = inputs
    r, length, ridge = model.student_rank, model.length, jnp.asarray(model.ridge)
    n, base = state.fields[0].shape[-1], initial.weights.shape[1]
    w = state.weights
    batch_key, image_key, field_key = jax.random.split(key, 3)

    m = initial.positions @ w[:, :base].T
    losses, force = vmap_points(jax.value_and_grad(model.energy))(
        _preactivations(model, state, m), state.target
    )
    loss = n / rule.d * jnp.mean(losses) + ridge / 2 * jnp.sum(w**2)
    if rule.batched:
        batch = jax.random.permutation(batch_key, n) < rule.batch_fraction * n
        force = force * batch / rule.batch_fraction
    gradient, state = _gradient(inputs, state, force, image_key)
    weights = w - lr[state.steps] * gradient + rule.momentum * (w - state.previous)

    values = Records(loss, jnp.linalg.norm(gradient), w[:, :base] @ initial.teacher.T, m, w @ w.T)
    records = jax.tree.map(
        lambda rows, value: rows.at[state.steps].set(value), state.records, values
    )
    directions = state.steps * r + r + model.teacher_rank
    state = state._replace(steps=state.steps + 1, weights=weights, previous=w, records=records)
    normal = jax.random.normal(field_key, (length, r, n), w.dtype)
    prepared = first_fields[jnp.minimum(state.steps, len(first_fields) - 1)]
    fresh = jnp.where(state.steps < len(first_fields), prepared, normal)
    return _condition(rule, state, weights, fresh, directions)


def _preactivations(
    model: Model, state: State, m: Float[Array, "tokens r"]
) -> Float[Array, "tokens r n"]:
    """Projected tokens ``h_l = sigma_l Z_l w + m_l`` of all sentences."""
    w, components = state.weights, state.weights @ state.weight_basis.T
    return jnp.stack([
        model.sigma[l] * (
            _combine(components, state.fields[l])
            + _combine(w @ state.images[l].T, state.force_basis[l])
        )
        + m[l][:, None]
        for l in range(model.length)
    ])  # fmt: skip


def _gradient(
    inputs: Inputs, state: State, force: Float[Array, "tokens r n"], key: Array
) -> tuple[Float[Array, "r dims"], State]:
    """Gradient ``sum_l (sigma_l Z_l^T g_l + p_l 1^T g_l)/d + ridge w``, with zeros by symmetry.

    The returned state contains the forces and their images.
    """
    model, initial, rule = inputs.model, inputs.initial, inputs.rule
    r, base, dtype = model.student_rank, initial.weights.shape[1], state.weights.dtype
    directions = (state.steps + 1) * r + model.teacher_rank
    gradient = jnp.asarray(model.ridge) * state.weights
    force_basis, images = [], []
    for l in range(model.length):
        new, inside = extend_basis(state.force_basis[l], force[l])
        axes = base + (state.steps * model.length + l) * r + jnp.arange(r)
        drawn = _draw_images(rule, jax.random.fold_in(key, l), state.weight_basis, axes, directions)
        drawn = drawn * jnp.any(new != 0, axis=1, keepdims=True)
        pulled = _combine(inside, state.images[l])
        pulled = pulled + _inner(force[l], new).astype(dtype) @ drawn
        pulled = pulled + _inner(force[l], state.fields[l]).astype(dtype) @ state.weight_basis
        mean = jnp.sum(force[l], axis=1)[:, None] * initial.positions[l]
        gradient = gradient + (model.sigma[l] * pulled).at[:, :base].add(mean) / rule.d
        row = (state.steps * r, 0)
        force_basis.append(jax.lax.dynamic_update_slice(state.force_basis[l], new, row))
        images.append(jax.lax.dynamic_update_slice(state.images[l], drawn, row))
    gradient = gradient.at[:, :base].multiply(initial.free)
    return gradient, state._replace(force_basis=tuple(force_basis), images=tuple(images))


def _draw_images(
    rule: UpdateRule,
    key: Array,
    weight_basis: Float[Array, "directions dims"],
    axes: Int[Array, " r"],
    directions: Int[Array, ""],
) -> Float[Array, "r dims"]:
    """Draw d-vectors b_lj orthogonal to the weights so far; each has a coordinate axis of its own.

    Parameters
    ----------
    axes : new coordinate axis of each vector
    directions : number of directions in `weight_basis`
    """
    indices = jnp.arange(weight_basis.shape[1])
    unit = (indices == axes[:, None]).astype(weight_basis.dtype)
    if not rule.exact:
        return jnp.sqrt(rule.d - directions) * unit
    normal = jax.random.normal(key, unit.shape, weight_basis.dtype)
    components = jnp.where(indices < axes[:, None], normal, 0.0)
    components = components - (components @ weight_basis.T) @ weight_basis
    # Length in the d - k other dimensions, to relative order 1/d^2.
    fluctuation = jnp.sum(jnp.where(unit > 0, normal, 0.0), axis=1, keepdims=True)
    length = jnp.sqrt(rule.d - axes[:, None] - 0.5) + fluctuation / np.sqrt(2)
    return components + length * unit


def _condition(
    rule: UpdateRule,
    state: State,
    weights: Float[Array, "r dims"],
    fresh: Float[Array, "tokens r n"],
    row: Int[Array, ""] | int,
) -> State:
    """Condition the Gaussian matrices on new weight directions, by fresh normal fields.

    The directions and their fields are written to the arrays from `row` on.
    """
    new, _ = extend_basis(state.weight_basis, weights)
    present = jnp.any(new != 0, axis=1, keepdims=True)
    n, updated = fresh.shape[-1], []
    for drawn, fields, force_basis in zip(fresh, state.fields, state.force_basis, strict=True):
        xi = drawn.astype(fields.dtype)
        xi = xi - _combine(_inner(xi, force_basis), force_basis)
        if not rule.exact:
            xi = xi * (np.sqrt(n) / jnp.linalg.norm(xi, axis=1, keepdims=True))
        xi = (xi * present).astype(fields.dtype)
        updated.append(jax.lax.dynamic_update_slice(fields, xi, (row, 0)))
    weight_basis = jax.lax.dynamic_update_slice(state.weight_basis, new, (row, 0))
    return state._replace(weight_basis=weight_basis, fields=tuple(updated))
