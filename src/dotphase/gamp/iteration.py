"""Generalised approximate message passing on one data set.

One iteration, with centres ``c = z Q/sqrt d - O`` and z = x + p:

    X = prox_V(c),   g = V^{-1}(X - c),   A = -(1/d) sum_{mu,l} sigma_l^2 dg_l/dc_l,
    R = (ridge I + A)^{-1},   Q' = R (sum_mu z^T g/sqrt d + A Q),
    O' = sigma_l^2 R g,   V' = sigma_l^2 R.

The proximal map uses each sentence's own quadratic form (`dotphase.finite_d.loss`), so a fixed
point is a critical point of the training loss at finite d: there ``X = z Q/sqrt d``,
``g = -d ell/dX`` and ``ridge Q = sum_mu z^T g/sqrt d``.

Damping mixes Q, V and the memory term O with their last values in the same proportions.
Because O is damped like Q, the centres stay Gaussian with the overlaps of Q as covariance,
and the damped iteration has a state evolution too (`dotphase.gamp.state_evolution`).

A is the mean Jacobian, which does not see jumps of the proximal map. Fixed points do not
depend on it. The way there does: where jumps carry a share w of the response, centres and
prediction are off by the order of w.

Near Q = 0, where the loss is a saddle, A can be so negative that ``ridge I + A`` is not
positive and V makes no sense. Its eigenvalues are kept above half the ridge. A minimum has
larger ones, and any A leaves the fixed points where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dotphase.finite_d import loss
from dotphase.finite_d.loss import Reduced, Weights, collect, project
from dotphase.gamp.force import Block, Sentences, apply_force, cut, fresh, join
from dotphase.model import Model
from dotphase.numerics.linalg import inverses
from dotphase.numerics.proximal_map import ProxState


class State(NamedTuple):
    """What an iteration hands to the next.

    Attributes
    ----------
    weights : Q
    memory : O, the reaction of the centres to their own past
    V : variance left to the proximal map, per token
    tracks : where the proximal map found its minima, by blocks of sentences
    """

    weights: Weights
    memory: Float[Array, "tokens r n"]
    V: Float[Array, "tokens r r"]
    tracks: tuple[ProxState, ...]


class Info(NamedTuple):
    """What is reported of an iteration: the norm of the gradient at its weights, and the share
    of sentences whose proximal problem was seen to have two minima."""

    gradient_norm: Float[Array, ""]
    rivals: Float[Array, ""]


@eqx.filter_jit
def in_blocks(reduced: Reduced) -> tuple[Sentences, ...]:
    """The sentences of a data set as the proximal map takes them."""
    return cut(Sentences(reduced.form, reduced.used))


@eqx.filter_jit
def first_state(reduced: Reduced, weights: Weights, V: Float[Array, "tokens r r"]) -> State:
    """Nothing remembered yet: the centres are the projections themselves."""
    centre = project(reduced.z, weights)
    tracks = tuple(fresh(block) for block in cut(centre))
    return State(weights, jnp.zeros_like(centre), V, tracks)


def iterate(
    model: Model,
    reduced: Reduced,
    sentences: Sequence[Sentences],
    state: State,
    damping: Float[Array, ""],
    call: Int[Array, ""],
) -> tuple[State, Info]:
    """One damped iteration; `sentences` are those of the data set `in_blocks`."""
    centres = _centres(reduced.z, state.weights, state.memory)
    found = apply_force(model, centres, state.V, sentences, state.tracks, call)
    return _advance(model, reduced, state, found, damping)


@eqx.filter_jit
def _centres(
    z: Float[Array, "n tokens d"], weights: Weights, memory: Float[Array, "tokens r n"]
) -> tuple[Float[Array, "tokens r block"], ...]:
    return cut(project(z, weights) - memory)


@eqx.filter_jit
def _advance(
    model: Model,
    reduced: Reduced,
    state: State,
    found: Sequence[Block],
    damping: Float[Array, ""],
) -> tuple[State, Info]:
    d = state.weights.shape[0]
    g = join([block.g for block in found], len(reduced.used))
    rho = jnp.asarray(model.rho)[:, None, None]
    A = bounded(-jnp.sum(rho * sum(block.response for block in found), axis=0) / d, model.ridge)
    R = inverses(model.ridge * jnp.eye(A.shape[0], dtype=A.dtype) + A)
    pulled = collect(reduced.z, g)
    weights = (pulled + state.weights @ A.T) @ R.T
    memory = jnp.einsum("lij,ljn->lin", rho * R, g)

    def mix(new: Array, old: Array) -> Array:
        return (1 - damping) * new + damping * old

    weights, memory, V = map(mix, (weights, memory, rho * R), state[:3])
    if model.proximal is not None:
        # A loss with kinks has no gradient: what the proximal forces leave is one of its slopes.
        gradient = jnp.asarray(model.ridge) * state.weights - pulled
    else:
        _, gradient = loss.value_and_gradient(model, reduced, state.weights)
    rivals = sum(block.rivals for block in found) / jnp.sum(reduced.used)
    tracks = tuple(block.track for block in found)
    return State(weights, memory, V, tracks), Info(jnp.linalg.norm(gradient), rivals)


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
