"""Forces of the proximal map on many sentences, in blocks of one size.

One compiled function serves data sets of every size. It also serves the paths of their state
evolution (`dotphase.gamp.state_evolution`), whose losses are quadratic forms of the same kind.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dotphase.finite_d.batches import on_cpu
from dotphase.finite_d.loss import sentence_derivatives
from dotphase.model import Model
from dotphase.numerics.linalg import inverses, matrix_sqrt, matvec
from dotphase.numerics.proximal_map import (
    ProximalProblem,
    ProxState,
    proximal_map,
    response,
    vmap_points,
)
from dotphase.runtime.threads import map_blocks

#: Sentences in a block on a CPU.
BLOCK = 2**10
#: Sentences in a block on an accelerator, where larger blocks take the same time.
BLOCK_ON_ACCELERATOR = 2**14


class Sentences(NamedTuple):
    """A block of sentences: their losses, and a mask that is 0 for padding."""

    form: Any
    used: Float[Array, " block"]


class BlockForce(NamedTuple):
    """Forces on a block of sentences."""

    g: Float[Array, "tokens r block"]  #: force ``V^{-1}(X - c)`` on each sentence, zero for padding
    response: Float[Array, "tokens r r"]  #: sum of ``dg_l/dc_l`` over sentences, per token
    two_minima: Float[Array, ""]  #: number of sentences whose proximal problem has two known minima
    prox_state: ProxState  #: minima of the proximal problems, to warm start the next call


def split_blocks(tree: Any) -> tuple[Any, ...]:
    """Split arrays along their last axis, the sentences; zeros fill the last block."""
    count = jax.tree.leaves(tree)[0].shape[-1]
    size = BLOCK if on_cpu() else BLOCK_ON_ACCELERATOR

    def block(leaf: Float[Array, "... n"], first: int) -> Float[Array, "... block"]:
        part = leaf[..., first : first + size]
        return jnp.pad(part, [(0, 0)] * (leaf.ndim - 1) + [(0, size - part.shape[-1])])

    return tuple(jax.tree.map(partial(block, first=k), tree) for k in range(0, count, size))


def join_blocks(blocks: Sequence[Array], count: int) -> Array:
    """Concatenate blocks and drop the padding after `count` sentences."""
    return jnp.concatenate(blocks, axis=-1)[..., :count]


@eqx.filter_jit
def initial_prox_state(center: Float[Array, "tokens r block"]) -> ProxState:
    """Start the proximal map at the centers."""
    return ProxState.initial(center.reshape(-1, center.shape[-1]))


def apply_force(
    model: Model,
    centers: Sequence[Float[Array, "tokens r block"]],
    V: Float[Array, "tokens r r"],
    sentences: Sequence[Sentences],
    prox_states: Sequence[ProxState],
    call: Int[Array, ""],
) -> list[BlockForce]:
    """Compute the force of the proximal map and its response in every block."""

    def block_force(k: int) -> BlockForce:
        return _block_force(model, centers[k], sentences[k], prox_states[k], V, call)

    # The first block runs alone, because it may compile the function for the others.
    return [block_force(0), *map_blocks(lambda k: block_force(k + 1), len(centers) - 1)]


@eqx.filter_jit
def _block_force(
    model: Model,
    center: Float[Array, "tokens r block"],
    sentences: Sentences,
    prox_state: ProxState,
    V: Float[Array, "tokens r r"],
    call: Int[Array, ""],
) -> BlockForce:
    """Force on one block, with ``dg/dc = V^{-1} ((V^{-1} + H)^{-1} V^{-1} - 1)``.

    H is the Hessian of the loss at the minimizer.
    """
    length, r, _ = center.shape
    flat = center.reshape(length * r, -1)
    block_diag = jax.scipy.linalg.block_diag
    precision = block_diag(*inverses(V))
    problem = ProximalProblem(flat, precision, block_diag(*matrix_sqrt(V)), sentences.form)
    derivatives, used = sentence_derivatives(model), sentences.used
    prox_state = proximal_map(derivatives, problem, prox_state, call)
    displacement = prox_state.x - flat
    g = vmap_points(lambda x: matvec(precision, x))(displacement)
    g = jnp.where(used > 0, g, 0.0).reshape(center.shape)
    jacobians = jnp.where(used > 0, response(derivatives, problem, prox_state.x), 0.0)
    total = jnp.sum(jacobians, axis=-1).reshape(length, r, length, r)
    diagonal = jnp.stack([total[l, :, l] for l in range(length)])
    symmetric = (diagonal + diagonal.swapaxes(1, 2)) / 2
    return BlockForce(g, symmetric, jnp.sum(used * prox_state.bistable), prox_state)
