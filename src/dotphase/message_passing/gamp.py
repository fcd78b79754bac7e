"""Generalised approximate message passing on one data set.

One iteration, with centres ``c = z Q/sqrt d - O`` and z = x + p:

    X = prox_V(c),   g = V^{-1}(X - c),   A = -(1/d) sum_{mu,l} sigma_l^2 dg_l/dc_l,
    R = (ridge I + A)^{-1},   Q' = R (sum_mu z^T g/sqrt d + A Q),
    O' = sigma_l^2 R g,   V' = sigma_l^2 R.

The proximal map uses each sentence's own quadratic form (`dotphase.finite.loss`), so a fixed
point is a critical point of the training loss at finite d: there ``X = z Q/sqrt d``,
``g = -d ell/dX`` and ``ridge Q = sum_mu z^T g/sqrt d``.

Damping mixes Q, V and the memory term O with their last values in the same proportions.
Because O is damped like Q, the centres stay Gaussian with the overlaps of Q as covariance,
and the damped iteration has a state evolution too (`dotphase.message_passing.prediction`).

A is the mean Jacobian, which does not see jumps of the proximal map. Fixed points do not
depend on it. The way there does: where jumps carry a share w of the response, centres and
prediction are off by the order of w.

Near Q = 0, where the loss is a saddle, A can be so negative that ``ridge I + A`` is not
positive and V makes no sense. Its eigenvalues are kept above half the ridge. A minimum has
larger ones, and any A leaves the fixed points where they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dotphase._numerics.linalg import inverses, matrix_sqrt, matvec
from dotphase._numerics.prox import Loss, Problem, Track, over_points, proximal_map, response
from dotphase.finite import loss
from dotphase.finite.loss import Reduced, Weights, collect, project
from dotphase.model import Model


class State(NamedTuple):
    """What an iteration hands to the next.

    Attributes
    ----------
    weights : Q
    memory : O, the reaction of the centres to their own past
    V : variance left to the proximal map, per token
    track : where the proximal map found its minima
    """

    weights: Weights
    memory: Float[Array, "tokens r n"]
    V: Float[Array, "tokens r r"]
    track: Track


class Info(NamedTuple):
    """What is reported of an iteration: the norm of the gradient at its weights, and the share
    of sentences whose proximal problem was seen to have two minima."""

    gradient_norm: Float[Array, ""]
    rivals: Float[Array, ""]


class Force(NamedTuple):
    """The proximal map's force on every sentence and its mean response.

    Attributes
    ----------
    g : ``V^{-1}(X - c)``
    response : mean of ``dg_l/dc_l`` over sentences, per token
    """

    g: Float[Array, "tokens r n"]
    response: Float[Array, "tokens r r"]


@eqx.filter_jit
def first_state(reduced: Reduced, weights: Weights, V: Float[Array, "tokens r r"]) -> State:
    """Nothing remembered yet: the centres are the projections themselves."""
    centre = project(reduced.z, weights)
    return State(weights, jnp.zeros_like(centre), V, Track.fresh(_flat(centre)))


@eqx.filter_jit
def iterate(
    model: Model,
    reduced: Reduced,
    state: State,
    damping: Float[Array, ""],
    call: Int[Array, ""],
) -> tuple[State, Info]:
    """One damped iteration."""
    d = state.weights.shape[0]
    centre = project(reduced.z, state.weights) - state.memory
    derivatives = loss.sentence_derivatives(model)
    used = reduced.used
    force, track = apply_force(derivatives, centre, state.V, reduced.form, state.track, call, used)
    n = jnp.sum(used)
    rho = jnp.asarray(model.rho)[:, None, None]
    A = bounded(-(n / d) * jnp.sum(rho * force.response, axis=0), model.ridge)
    R = inverses(model.ridge * jnp.eye(A.shape[0], dtype=A.dtype) + A)
    weights = (collect(reduced.z, force.g) + state.weights @ A.T) @ R.T
    memory = jnp.einsum("lij,ljn->lin", rho * R, force.g)

    def mix(new: Array, old: Array) -> Array:
        return (1 - damping) * new + damping * old

    weights, memory, V = map(mix, (weights, memory, rho * R), state[:3])
    if model.proximal is not None:
        # A loss with kinks has no gradient: what the proximal forces leave is one of its slopes.
        gradient = jnp.asarray(model.ridge) * state.weights - collect(reduced.z, force.g)
    else:
        _, gradient = loss.value_and_gradient(model, reduced, state.weights)
    return State(weights, memory, V, track), Info(
        jnp.linalg.norm(gradient), jnp.sum(used * track.rival) / n
    )


def apply_force(
    derivatives: Loss,
    centre: Float[Array, "tokens r n"],
    V: Float[Array, "tokens r r"],
    data: object,
    track: Track,
    call: Int[Array, ""],
    used: Float[Array, " n"],
) -> tuple[Force, Track]:
    """The proximal map at the centres, its force, and how the force responds to them.

    ``dg/dc = V^{-1} ((V^{-1} + H)^{-1} V^{-1} - 1)``, H the Hessian of the loss at the minimiser.
    `used` is one where a sentence counts; there is no force on the others.
    """
    length, r, n = centre.shape
    flat = _flat(centre)
    blocks = jax.scipy.linalg.block_diag
    precision = blocks(*inverses(V))
    problem = Problem(flat, precision, blocks(*matrix_sqrt(V)), data)
    track = proximal_map(derivatives, problem, track, call)
    g = over_points(lambda away: matvec(precision, away))(track.x - flat) * used
    mean = response(derivatives, problem, track.x) @ used / jnp.sum(used)
    mean = mean.reshape(length, r, length, r)
    own = jnp.stack([mean[l, :, l] for l in range(length)])
    return Force(g.reshape(length, r, n), (own + own.swapaxes(1, 2)) / 2), track


def bounded(A: Float[Array, "r r"], ridge: Any) -> Float[Array, "r r"]:
    """A with its eigenvalues raised to ``-ridge/2`` where they are below."""
    values, vectors = jnp.linalg.eigh(A)
    return (vectors * jnp.maximum(values, -0.5 * ridge)) @ vectors.T


@eqx.filter_jit
def is_sane(state: State) -> Bool[Array, ""]:
    """Whether the iteration still makes sense: finite, with variances that are positive."""
    finite = jnp.all(jnp.isfinite(state.weights)) & jnp.all(jnp.isfinite(state.V))
    safe = jnp.where(jnp.isfinite(state.V), state.V, 0.0)
    return finite & (jnp.min(jnp.linalg.eigvalsh(safe)) > 0)


def _flat(centre: Float[Array, "tokens r n"]) -> Float[Array, "dims n"]:
    return centre.reshape(-1, centre.shape[-1])
