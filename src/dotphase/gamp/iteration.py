"""Generalized approximate message passing on one data set.

One iteration, with centers ``c = z Q/sqrt d - O`` and z = x + p:

    X = prox_V(c),   g = V^{-1}(X - c),   A = -(1/d) sum_{mu,l} sigma_l^2 dg_l/dc_l,
    R = (ridge I + A)^{-1},   Q' = R (sum_mu z^T g/sqrt d + A Q),
    O' = sigma_l^2 R g,   V' = sigma_l^2 R.

The proximal map uses each sentence's own quadratic form (`dotphase.finite_d.loss`), so a fixed
point is a critical point of the training loss at finite d: there ``X = z Q/sqrt d``,
``g = -d ell/dX`` and ``ridge Q = sum_mu z^T g/sqrt d``.

Damping mixes Q, V and the memory term O with their last values in the same proportions.
Because O is damped like Q, the centers stay Gaussian with the overlaps of Q as covariance,
and the damped iteration has a state evolution too (`dotphase.gamp.state_evolution`).

A is the mean Jacobian, which misses the jumps of the proximal map. Fixed points do not depend
on A, but the iterations before do: if jumps carry a share w of the response, centers and
prediction are off by the order of w.

Near Q = 0, where the loss is a saddle, A can be so negative that ``ridge I + A`` is not positive
and V is no variance. The eigenvalues of A are therefore raised to minus half the ridge. Those at a
minimum are larger, and no choice of A moves the fixed points.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dotphase.finite_d import loss
from dotphase.finite_d.loss import Reduced, Weights, collect, project
from dotphase.gamp.force import (
    BlockForce,
    Sentences,
    apply_force,
    initial_prox_state,
    join_blocks,
    split_blocks,
)
from dotphase.model import Model
from dotphase.numerics.linalg import inverses
from dotphase.numerics.proximal_map import ProxState


class State(NamedTuple):
    """State of the iteration."""

    weights: Weights  #: Q
    memory: Float[Array, "tokens r n"]  #: O, the memory term of the centers
    V: Float[Array, "tokens r r"]  #: variances of the proximal map, per token
    prox_states: tuple[ProxState, ...]  #: minima of the proximal problems, by blocks of sentences


class Diagnostics(NamedTuple):
    """Norm of the gradient at the weights, and share of proximal problems with two minima."""

    gradient_norm: Float[Array, ""]
    two_minima: Float[Array, ""]


@eqx.filter_jit
def sentence_blocks(reduced: Reduced) -> tuple[Sentences, ...]:
    """Split the sentences of a data set into blocks for the proximal map."""
    return split_blocks(Sentences(reduced.form, reduced.used))


@eqx.filter_jit
def initial_state(reduced: Reduced, weights: Weights, V: Float[Array, "tokens r r"]) -> State:
    """State without memory: the centers are the projections themselves."""
    center = project(reduced.z, weights)
    prox_states = tuple(initial_prox_state(block) for block in split_blocks(center))
    return State(weights, jnp.zeros_like(center), V, prox_states)


def iterate(
    model: Model,
    reduced: Reduced,
    sentences: Sequence[Sentences],
    state: State,
    damping: Float[Array, ""],
    call: Int[Array, ""],
) -> tuple[State, Diagnostics]:
    """Do one damped iteration on a data set and its `sentence_blocks`."""
    centers = _centers(reduced.z, state.weights, state.memory)
    forces = apply_force(model, centers, state.V, sentences, state.prox_states, call)
    return _update(model, reduced, state, forces, damping)


@eqx.filter_jit
def _centers(
    z: Float[Array, "n tokens d"], weights: Weights, memory: Float[Array, "tokens r n"]
) -> tuple[Float[Array, "tokens r block"], ...]:
    """Centers ``c = z Q/sqrt d - O`` in blocks."""
    return split_blocks(project(z, weights) - memory)


@eqx.filter_jit
def _update(
    model: Model,
    reduced: Reduced,
    state: State,
    forces: Sequence[BlockForce],
    damping: Float[Array, ""],
) -> tuple[State, Diagnostics]:
    """Compute the next state from the forces."""
    d = state.weights.shape[0]
    g = join_blocks([force.g for force in forces], len(reduced.used))
    rho = jnp.asarray(model.rho)[:, None, None]
    mean = -jnp.sum(rho * sum(force.response for force in forces), axis=0) / d
    A = raise_eigenvalues(mean, model.ridge)
    R = inverses(model.ridge * jnp.eye(A.shape[0], dtype=A.dtype) + A)
    pulled = collect(reduced.z, g)
    weights = (pulled + state.weights @ A.T) @ R.T
    memory = jnp.einsum("lij,ljn->lin", rho * R, g)

    def mix(new: Array, old: Array) -> Array:
        return (1 - damping) * new + damping * old

    weights, memory, V = map(mix, (weights, memory, rho * R), state[:3])
    if model.proximal is not None:
        # A loss with kinks has no gradient: the proximal forces give a subgradient.
        gradient = jnp.asarray(model.ridge) * state.weights - pulled
    else:
        _, gradient = loss.value_and_gradient(model, reduced, state.weights)
    two_minima = sum(force.two_minima for force in forces) / jnp.sum(reduced.used)
    prox_states = tuple(force.prox_state for force in forces)
    diagnostics = Diagnostics(jnp.linalg.norm(gradient), two_minima)
    return State(weights, memory, V, prox_states), diagnostics


def raise_eigenvalues(A: Float[Array, "r r"], ridge: Any) -> Float[Array, "r r"]:
    """Raise the eigenvalues of A to ``-ridge/2`` where they are below."""
    values, vectors = jnp.linalg.eigh(A)
    return (vectors * jnp.maximum(values, -0.5 * ridge)) @ vectors.T


@eqx.filter_jit
def is_valid(state: State) -> Bool[Array, ""]:
    """Return True if all numbers are finite and all variances positive."""
    finite = jnp.all(jnp.isfinite(state.weights)) & jnp.all(jnp.isfinite(state.V))
    V = jnp.where(jnp.isfinite(state.V), state.V, 0.0)
    return finite & (jnp.min(jnp.linalg.eigvalsh(V)) > 0)
