"""One-pass stochastic gradient descent: every step uses a new sentence.

A step on one sentence with fields ``X_l = h_l + m_l`` and forces ``g_l = d ell/dX_l`` (r numbers
for each token) is

    Q <- Q - lr (sum_l (x_l + p_l) g_l^T/sqrt d + (ridge/d) Q).

Let C be the coordinates of ``Q/sqrt d`` in an orthonormal basis of Q*, the positions and the rest
of Q, and z_l those of ``x_l + p_l``. Averages over new sentences give, in time alpha = steps/d,

    dC/dalpha = -lr (D + ridge C),   D = sum_l E[g_l z_l^T],

and the part of x_l outside the basis, a new direction of squared length sigma_l^2 d, adds

    lr^2 N,   N = sum_l sigma_l^2 E[g_l g_l^T],

to the time derivative of the Gram matrix S of the rest, and thus to that of ``W = Q^T Q/d``. The
first part is gradient flow with time lr x alpha (`dotphase.theory.gradient_flow`).
A step on a batch of B sentences, whose gradients are added, moves C by ``(B/d) dC/dalpha`` and adds
``lr^2 (B/d) N`` to S. If B grows with d, the limit of large d consists of these finite steps.

At finite d a step uses few numbers of a new sentence: its coordinates, and the products of its
tokens outside the basis, a Wishart matrix. C is then a Markov chain with the law of training at
this d, and costs the same for every d. Two small terms are left out: the Wishart matrix is replaced
by a Gaussian one with the same mean and variances, and products of different sentences of a batch
outside the basis by their mean, zero.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.dmft.conditioned_descent import Initialization
from dotphase.finite_d.loss import form_of, sentence_loss
from dotphase.model import Model
from dotphase.numerics.linalg import matrix_sqrt
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.quadrature import Rule

#: Eigenvalues below this multiple of the largest are zero.
ZERO = 1e-12

Coordinates = Float[Array, "r base"]


class Averages(NamedTuple):
    """Averages over sentences that determine a step.

    Attributes
    ----------
    drift : D, ``sum_l E[g_l z_l^T]``
    noise : N, ``sum_l sigma_l^2 E[g_l g_l^T]``
    """

    drift: Coordinates
    noise: Float[Array, "r r"]


class StepRule(NamedTuple):
    """Traced numbers of a step.

    Attributes
    ----------
    lr : learning rate
    duration : sentences of the step over d
    norms : lengths of the columns that the spherical constraint keeps; None without it
    """

    lr: Float[Array, ""] | float
    duration: Float[Array, ""] | float
    norms: Float[Array, " r"] | None = None


def step(
    model: Model, weights: Coordinates, averages: Averages, rule: StepRule, free: Coordinates
) -> Coordinates:
    """Take one step with given averages."""
    change = free * (averages.drift + model.ridge * weights)
    moved = weights - rule.lr * rule.duration * change
    rest = moved[:, -len(weights) :]
    gram = rest @ rest.T + rule.lr**2 * rule.duration * averages.noise
    moved = jnp.concatenate([moved[:, : -len(weights)], matrix_sqrt(gram)], axis=1)
    if rule.norms is not None:
        moved = (rule.norms / jnp.linalg.norm(moved, axis=1))[:, None] * moved
    return moved


@eqx.filter_jit
def velocity(
    model: Model,
    start: Initialization,
    state: Float[Array | np.ndarray, " state"],
    lr: Float[Array, ""],
    rule: Rule,
    spherical: bool,
) -> Float[Array, " state"]:
    """Return the time derivative of the state (`pack`) in the limit of large d."""
    weights = unpack(state, start)
    averages = limit_averages(model, start.positions, weights, rule)
    r = len(weights)
    change = -lr * start.free * (averages.drift + model.ridge * weights)
    products = change[:, -r:] @ weights[:, -r:].T
    gram = products + products.T + lr**2 * averages.noise
    if spherical:
        other = weights[:, -r:] @ weights[:, -r:].T
        growth = 2 * jnp.sum(change[:, :-r] * weights[:, :-r], axis=1) + jnp.diag(gram)
        rate = growth / (2 * jnp.sum(weights**2, axis=1))
        change = change - rate[:, None] * weights
        gram = gram - (rate[:, None] + rate) * other
    return jnp.concatenate([change[:, :-r].ravel(), gram.ravel()])


def pack(weights: Float[np.ndarray, "r base"]) -> Float[np.ndarray, " state"]:
    """Return coordinates on Q* and the positions, and the Gram matrix of the rest, as a vector."""
    rest = weights[:, -len(weights) :]
    return np.concatenate([weights[:, : -len(weights)].ravel(), (rest @ rest.T).ravel()])


def unpack(state: Float[Array | np.ndarray, " state"], start: Initialization) -> Coordinates:
    """Return the coordinates of a state."""
    r, base = start.weights.shape
    state = jnp.asarray(state)
    known = state[: r * (base - r)].reshape(r, base - r)
    return jnp.concatenate([known, matrix_sqrt(state[r * (base - r) :].reshape(r, r))], axis=1)


def limit_averages(
    model: Model, positions: Float[Array, "tokens base"], weights: Coordinates, rule: Rule
) -> Averages:
    """Average over Gaussian fields; the basis begins with Q*.

    The fields outside Q* have covariance ``C_o C_o^T`` with the coordinates C_o outside Q*. Given
    these fields, the coordinates of x_l have conditional means that are linear in them.
    """
    t, r, length = model.teacher_rank, len(weights), model.length
    fields = length * (t + r)
    zeta = jnp.asarray(rule.points[:fields]).reshape(length, t + r, -1)
    scaled = jnp.asarray(model.sigma)[:, None, None] * zeta
    h, xi = scaled[:, :t], scaled[:, t:]
    others = weights[:, t:]
    values, vectors = jnp.linalg.eigh(others @ others.T)
    present = values > ZERO * jnp.sum(weights**2)
    size = jnp.sqrt(jnp.where(present, values, 1.0))
    root = (vectors * jnp.where(present, size, 0.0)) @ vectors.T
    inverse = (vectors * jnp.where(present, 1 / size, 0.0)) @ vectors.T
    means = jnp.einsum("rb,lrn->lbn", inverse @ others, xi)
    tokens = jnp.concatenate([h, means], axis=1) + positions[..., None]
    x = jnp.einsum("rt,ltn->lrn", weights[:, :t], h) + jnp.einsum("rs,lsn->lrn", root, xi)
    x = x + (positions @ weights.T)[..., None]
    target = vmap_points(model.label)(h, jnp.asarray(rule.points[fields:]))
    force = vmap_points(jax.grad(model.energy))(x, target)
    weighted = jnp.asarray(rule.weights) * force
    return Averages(
        drift=jnp.einsum("lrn,lbn->rb", weighted, tokens),
        noise=jnp.einsum("lrn,lsn,l->rs", weighted, force, jnp.asarray(model.rho)),
    )


def drawn_averages(
    model: Model,
    start: Initialization,
    weights: Coordinates,
    key: Array,
    batch: int,
    d: Array | float,
) -> Averages:
    """Average over a batch of new sentences at finite d."""
    keys, base = jax.random.split(key, 3), weights.shape[1]
    x = jax.random.normal(keys[0], (model.length, base, batch))
    x = jnp.asarray(model.sigma)[:, None, None] * x
    normals = jax.random.normal(keys[1], (model.normals, batch))
    outside = _outside_products(model, d - base, keys[2], batch) / d
    return sentence_averages(model, start, weights, x, normals, outside, d)


def sentence_averages(
    model: Model,
    start: Initialization,
    weights: Coordinates,
    x: Float[Array, "tokens base batch"],
    normals: Float[Array, "normals batch"],
    outside: Float[Array, "tokens tokens batch"],
    d: Array | float,
) -> Averages:
    """Average over sentences with coordinates x and products outside the basis, over d."""
    target = vmap_points(model.label)(jnp.einsum("tb,lbn->ltn", start.teacher, x), normals)
    tokens, form = x + start.positions[..., None], target
    if model.loss is None:
        xx = jnp.einsum("kbn,lbn->kln", x, x) / d + outside
        xp = jnp.einsum("kbn,lb->kln", x, start.positions) / d
        form = form_of(target, xx, xp, (start.positions @ start.positions.T / d)[..., None])
    batch = x.shape[-1]
    fields = jnp.einsum("rb,lbn->lrn", weights, tokens)
    force = vmap_points(jax.grad(partial(sentence_loss, model)))(fields, form)
    return Averages(
        drift=jnp.einsum("lrn,lbn->rb", force, tokens) / batch,
        noise=jnp.einsum("lrn,lkn,ksn->rs", force, outside, force) / batch,
    )


def _outside_products(
    model: Model, dims: Array | float, key: Array, batch: int
) -> Float[Array, "tokens tokens batch"]:
    """Draw the products of the tokens of each sentence in a number of other dimensions.

    Symmetrizing normal numbers gives variances 2 on the diagonal and 1 elsewhere.
    """
    normal = jax.random.normal(key, (model.length, model.length, batch))
    symmetric = (normal + normal.swapaxes(0, 1)) / np.sqrt(2)
    scale = jnp.asarray(model.sigma)[:, None, None] * jnp.asarray(model.sigma)[:, None]
    return scale * (dims * jnp.eye(model.length)[..., None] + jnp.sqrt(dims) * symmetric)


@eqx.filter_jit
def limit_steps(
    model: Model,
    start: Initialization,
    lr: Float[Array, " steps"],
    rule: Rule,
    step_rule: StepRule,
    recorded: Int[Array, " records"],
) -> Float[Array, "records r base"]:
    """Return the coordinates after the recorded numbers of steps on large batches."""

    def advance(index: Array, weights: Coordinates) -> Coordinates:
        averages = limit_averages(model, start.positions, weights, rule)
        return step(model, weights, averages, step_rule._replace(lr=lr[index]), start.free)

    return _record(advance, start.weights, recorded)


@eqx.filter_jit
def chain(
    model: Model,
    start: Initialization,
    lr: Float[Array, " steps"],
    batch: int,
    d: Array | float,
    step_rule: StepRule,
    recorded: Int[Array, " records"],
    key: Array,
) -> Float[Array, "records r base"]:
    """Return the coordinates of one run at finite d after the recorded numbers of steps."""

    def advance(index: Array, weights: Coordinates) -> Coordinates:
        averages = drawn_averages(model, start, weights, jax.random.fold_in(key, index), batch, d)
        return step(model, weights, averages, step_rule._replace(lr=lr[index]), start.free)

    return _record(advance, start.weights, recorded)


def _record(advance: object, weights: Coordinates, recorded: Int[Array, " records"]) -> Array:
    """Iterate, and return the state after each recorded number of steps."""

    def segment(weights: Coordinates, bounds: Array) -> tuple[Coordinates, Coordinates]:
        weights = jax.lax.fori_loop(bounds[0], bounds[1], advance, weights)
        return weights, weights

    first = jnp.concatenate([jnp.zeros(1, recorded.dtype), recorded[:-1]])
    return jax.lax.scan(segment, weights, jnp.stack([first, recorded], axis=1))[1]
