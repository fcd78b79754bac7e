"""The proximal map's force on many sentences, in blocks of one size.

One compiled function serves data sets of every size, and the paths of their state evolution
(`dotphase.gamp.state_evolution`), whose losses are quadratic forms of the same kind.
"""

from __future__ import annotations

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

#: Sentences in a block: on an accelerator many, where a block takes the same time for any number.
BLOCK, BLOCK_ON_ACCELERATOR = 2**10, 2**14


class Sentences(NamedTuple):
    """A block of sentences: their losses, and one where a sentence counts."""

    form: Any
    used: Float[Array, " block"]


class Block(NamedTuple):
    """What the proximal map makes of a block.

    Attributes
    ----------
    g : the force ``V^{-1}(X - c)``, zero on sentences that do not count
    response : sum of ``dg_l/dc_l`` over sentences, per token
    rivals : how many sentences were seen to have two minima
    track : where the proximal map found its minima
    """

    g: Float[Array, "tokens r block"]
    response: Float[Array, "tokens r r"]
    rivals: Float[Array, ""]
    track: ProxState


def cut(tree: Any) -> tuple[Any, ...]:
    """Sentences on the last axis, in blocks; the last one is filled up with zeros."""
    count = jax.tree.leaves(tree)[0].shape[-1]
    block = BLOCK if on_cpu() else BLOCK_ON_ACCELERATOR

    def filled(leaf: Float[Array, "... n"], begin: int) -> Float[Array, "... block"]:
        some = leaf[..., begin : begin + block]
        return jnp.pad(some, [(0, 0)] * (leaf.ndim - 1) + [(0, block - some.shape[-1])])

    return tuple(
        jax.tree.map(partial(filled, begin=begin), tree) for begin in range(0, count, block)
    )


def join(blocks: Sequence[Array], count: int) -> Array:
    """The first `count` sentences of blocks."""
    return jnp.concatenate(blocks, axis=-1)[..., :count]


@eqx.filter_jit
def fresh(centre: Float[Array, "tokens r block"]) -> ProxState:
    """Where the proximal map begins: at the centres."""
    return ProxState.initial(centre.reshape(-1, centre.shape[-1]))


def apply_force(
    model: Model,
    centres: Sequence[Float[Array, "tokens r block"]],
    V: Float[Array, "tokens r r"],
    sentences: Sequence[Sentences],
    tracks: Sequence[ProxState],
    call: Int[Array, ""],
) -> list[Block]:
    """The proximal map at the centres of all blocks, its force, and how the force responds."""

    def work(k: int) -> Block:
        return _on_block(model, centres[k], sentences[k], tracks[k], V, call)

    # The first one by itself: it may have to be compiled, once.
    return [work(0), *map_blocks(lambda k: work(k + 1), len(centres) - 1)]


@eqx.filter_jit
def _on_block(
    model: Model,
    centre: Float[Array, "tokens r block"],
    sentences: Sentences,
    track: ProxState,
    V: Float[Array, "tokens r r"],
    call: Int[Array, ""],
) -> Block:
    """``dg/dc = V^{-1} ((V^{-1} + H)^{-1} V^{-1} - 1)``, H the Hessian of the loss at the
    minimizer."""
    length, r, _ = centre.shape
    flat = centre.reshape(length * r, -1)
    blocks = jax.scipy.linalg.block_diag
    precision = blocks(*inverses(V))
    problem = ProximalProblem(flat, precision, blocks(*matrix_sqrt(V)), sentences.form)
    derivatives, used = sentence_derivatives(model), sentences.used
    track = proximal_map(derivatives, problem, track, call)
    g = jnp.where(used > 0, vmap_points(lambda away: matvec(precision, away))(track.x - flat), 0.0)
    slopes = jnp.where(used > 0, response(derivatives, problem, track.x), 0.0)
    slopes = jnp.sum(slopes, axis=-1).reshape(length, r, length, r)
    own = jnp.stack([slopes[l, :, l] for l in range(length)])
    rivals = jnp.sum(used * track.bistable)
    return Block(g.reshape(centre.shape), (own + own.swapaxes(1, 2)) / 2, rivals, track)
