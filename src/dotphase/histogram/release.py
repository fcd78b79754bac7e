"""Lifting the constraint: does a constrained solution stay where it is?

The parameters are written into the unconstrained network with a little noise on those that the
constraint had bound, and training goes on by plain gradient steps. A solution that is not a
minimum of the unconstrained loss would leave.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.histogram.network import (
    FREE,
    Constraint,
    Network,
    constraint,
    in_single_precision,
)
from dotphase.histogram.task import Split
from dotphase.histogram.train import Plan, Store, Trained, train

#: Standard deviation of the noise, and epochs of gradient steps (arXiv:2402.03902).
NOISE, EPOCHS = 1e-3, 100


def same_rule(mechanism: str, dimension: int, runs: int) -> Constraint:
    """One constraint for all runs, with the leading axis over them."""
    return jax.tree.map(lambda leaf: np.tile(leaf, (runs, 1)), constraint(mechanism, dimension))


@in_single_precision
def unbind(networks: Network, keys: Array, noise: float = NOISE) -> Network:
    """Constrained networks with noise on embeddings, query and key: points of the free space."""
    return jax.tree.map(np.asarray, _add_noise(networks, keys, noise))


@jax.jit
def _add_noise(networks: Network, keys: Array, noise: float) -> Network:
    def one(network: Network, key: Array) -> Network:
        def bound(some: Network) -> tuple[Array, ...]:
            return some.tokens, some.positions, some.query, some.key

        parts = bound(network)
        keys = jax.random.split(key, len(parts))
        noisy = [
            part + noise * jax.random.normal(k, part.shape, jnp.float32)
            for part, k in zip(parts, keys, strict=True)
        ]
        return eqx.tree_at(bound, network, tuple(noisy))

    return jax.vmap(one)(networks, keys)


def release(
    networks: Network,
    keys: Array,
    split: Split,
    *,
    epochs: int = EPOCHS,
    batch: int = Plan.batch,
    store: Store | None = None,
    on_epoch: Callable[[int, np.ndarray], None] | None = None,
) -> tuple[Network, Trained]:
    """Train constrained networks on without their constraint.

    Returns
    -------
    Network, Trained
        The points they were released at, noise included, and what became of them.
    """
    starts = unbind(networks, keys)
    rules = same_rule(FREE, networks.value.shape[-1], len(keys))
    plan = Plan(optimiser="sgd", epochs=epochs, batch=batch)
    trained = train(starts, rules, keys, split, plan, store=store, on_epoch=on_epoch)
    return starts, trained
