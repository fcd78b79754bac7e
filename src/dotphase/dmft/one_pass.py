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
from typing import Any, NamedTuple

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

Coordinates = Float[Array, "r base"]
#: Coordinates and Gram matrix of `pack`.
State = Float[Array | np.ndarray, " state"]


class Averages(NamedTuple):
    """Averages over sentences that determine a step.

    Attributes
    ----------
    drift : D, ``sum_l E[g_l z_l^T]``
    noise : N, ``sum_l sigma_l^2 E[g_l g_l^T]``
    """

    drift: Coordinates
    noise: Float[Array, "r r"]


class Sentences(NamedTuple):
    """Draws of new sentences at finite d.

    Attributes
    ----------
    key : key of all sentences of a run
    batch : sentences of a step
    d : dimension of a token
    """

    key: Array
    batch: int
    d: Float[Array, ""]


def step(
    model: Model,
    free: Coordinates,
    weights: Coordinates,
    averages: Averages,
    lr: Array | float,
    duration: Array | float,
    spherical: bool = False,
) -> State:
    """Return the state after a step with given averages; `duration` is its sentences over d."""
    r = len(weights)
    moved = weights - lr * duration * free * (averages.drift + model.ridge * weights)
    aligned, gram = moved[:, :-r], moved[:, -r:] @ moved[:, -r:].T
    gram = gram + lr**2 * duration * averages.noise
    if spherical:
        lengths = jnp.sqrt(jnp.sum(aligned**2, axis=1) + jnp.diag(gram))
        factors = (jnp.linalg.norm(weights, axis=1) / lengths)[:, None]
        aligned, gram = factors * aligned, factors * gram * factors.T
    return jnp.concatenate([aligned.ravel(), gram.ravel()])


@eqx.filter_jit
def velocity(
    model: Model,
    start: Initialization,
    state: State,
    lr: Float[Array, ""],
    rule: Rule,
    spherical: bool,
) -> State:
    """Return the time derivative of the state in the limit of large d, that of a short step."""
    weights = unpack(state, start)
    averages = limit_averages(model, start.positions, weights, rule)

    def after(duration: Array) -> State:
        return step(model, start.free, weights, averages, lr, duration, spherical)

    return jax.jvp(after, (jnp.zeros(()),), (jnp.ones(()),))[1]


def pack(weights: Float[np.ndarray, "r base"]) -> Float[np.ndarray, " state"]:
    """Return coordinates on Q* and the positions, and the Gram matrix of the rest, as a vector."""
    rest = weights[:, -len(weights) :]
    return np.concatenate([weights[:, : -len(weights)].ravel(), (rest @ rest.T).ravel()])


def unpack(state: State, start: Initialization) -> Coordinates:
    """Return the coordinates of a state."""
    r, base = start.weights.shape
    state = jnp.asarray(state)
    aligned, gram = jnp.split(state, [r * (base - r)])
    rest = matrix_sqrt(gram.reshape(r, r))
    return jnp.concatenate([aligned.reshape(r, base - r), rest], axis=1)


def limit_averages(
    model: Model, positions: Float[Array, "tokens base"], weights: Coordinates, rule: Rule
) -> Averages:
    """Average over Gaussian fields; the basis begins with Q*.

    The fields outside Q* are ``C_o z``, with coordinates ``C_o = U diag(s) V`` outside Q*. They
    depend on r combinations of z, for which the rows of the polar factor UV are a basis. The
    conditional mean of z given the fields has no other component.
    """
    t, r, length = model.teacher_rank, len(weights), model.length
    fields = length * (t + r)
    zeta = jnp.asarray(rule.points[:fields]).reshape(length, t + r, -1)
    scaled = jnp.asarray(model.sigma)[:, None, None] * zeta
    U, _, V = jnp.linalg.svd(weights[:, t:], full_matrices=False)
    h, means = scaled[:, :t], jnp.einsum("rb,lrn->lbn", U @ V, scaled[:, t:])
    tokens = jnp.concatenate([h, means], axis=1) + positions[..., None]
    target = vmap_points(model.label)(h, jnp.asarray(rule.points[fields:]))
    force = vmap_points(jax.grad(model.energy))(jnp.einsum("rb,lbn->lrn", weights, tokens), target)
    weighted = jnp.asarray(rule.weights) * force
    return Averages(
        drift=jnp.einsum("lrn,lbn->rb", weighted, tokens),
        noise=jnp.einsum("lrn,lsn,l->rs", weighted, force, jnp.asarray(model.rho)),
    )


def drawn_averages(
    model: Model, start: Initialization, weights: Coordinates, sentences: Sentences
) -> Averages:
    """Average over a batch of new sentences at finite d.

    In the other d - base dimensions the tokens of a sentence have products of mean
    ``sigma_l^2 (d - base)`` on the diagonal. Symmetrizing normal numbers gives variances 2 on the
    diagonal and 1 elsewhere.
    """
    _, batch, d = sentences
    keys, base = jax.random.split(sentences.key, 3), weights.shape[1]
    sigma = jnp.asarray(model.sigma)[:, None, None]
    x = sigma * jax.random.normal(keys[0], (model.length, base, batch))
    normals = jax.random.normal(keys[1], (model.normals, batch))
    normal = jax.random.normal(keys[2], (model.length, model.length, batch))
    symmetric = (normal + normal.swapaxes(0, 1)) / np.sqrt(2)
    products = (d - base) * jnp.eye(model.length)[..., None] + jnp.sqrt(d - base) * symmetric
    outside = sigma * sigma[:, 0] * products / d
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


@eqx.filter_jit
def descend(
    model: Model,
    start: Initialization,
    lr: Float[Array, " steps"],
    duration: Array | float,
    recorded: Int[Array, " records"],
    spherical: bool,
    source: Rule | Sentences,
) -> Float[Array, "records r base"]:
    """Return the coordinates after the recorded numbers of steps of equal duration.

    The averages are those of the limit of large d for a quadrature rule, and those of new
    sentences at finite d.
    """

    def advance(index: Array, weights: Coordinates) -> Coordinates:
        if isinstance(source, Sentences):
            drawn = source._replace(key=jax.random.fold_in(source.key, index))
            averages = drawn_averages(model, start, weights, drawn)
        else:
            averages = limit_averages(model, start.positions, weights, source)
        state = step(model, start.free, weights, averages, lr[index], duration, spherical)
        return unpack(state, start)

    def segment(carry: tuple[Array, Coordinates], until: Array) -> Any:
        weights = jax.lax.fori_loop(carry[0], until, advance, carry[1])
        return (until, weights), weights

    return jax.lax.scan(segment, (jnp.zeros_like(recorded[0]), start.weights), recorded)[1]
