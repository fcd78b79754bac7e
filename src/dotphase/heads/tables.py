"""Sums of log attention over groups of entries, in constant memory.

An entry is one query and one key of one sentence. Groups are pairs of positions, ordered pairs of
tokens, or both. Sentences are divided into blocks; each group has one sum for each block and head.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

#: Odd multiplier of the hash: 2^64 divided by the golden ratio.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
#: Variance of log attention below which a head is uniform: it has no share but the rest.
NO_VARIANCE = 1e-10


def entry_groups(
    shape: tuple[int, ...], tokens: tuple[np.ndarray, ...], symbols: int
) -> dict[str, Int[np.ndarray, "sentences queries keys"]]:
    """Number the groups of entries: pairs of positions, pairs of numbered tokens, and both."""
    positions = np.arange(np.prod(shape[1:])).reshape(shape[1:])
    groups = {"positional": np.broadcast_to(positions, shape)}
    if tokens:
        pairs = symbols * tokens[0][:, :, None] + tokens[1][:, None, :]
        groups |= {"semantic": pairs, "both": symbols**2 * positions + pairs}
    return groups


class GroupTable:
    """Sums and counts of entries by block and group.

    If there are more possible groups than slots, a group occupies the slot of its hash, and groups
    that find their slot occupied are left out. This does not depend on the attention.
    """

    def __init__(self, groups: int, blocks: int, heads: int, size: int) -> None:
        slots = max(size // (4 * blocks * heads), 1)
        self.dense, self.slots = groups <= slots, min(groups, slots)
        self.owner = None if self.dense else np.full(self.slots, -1, np.int64)
        self.counts = np.zeros((blocks, self.slots))
        # One more slot receives entries that are left out.
        self.sums = jnp.zeros((blocks * (self.slots + 1), heads), jnp.float32)
        self.squares = jnp.zeros((self.slots + 1, heads), jnp.float32)

    def index(self, groups: Int[np.ndarray, " entries"]) -> Int[np.ndarray, " entries"]:
        """Return the slots of groups; negative groups and those without a slot are left out."""
        if self.owner is None:
            return np.where(groups < 0, self.slots, groups).astype(np.int32)
        hashed = (groups.astype(np.uint64) * MULTIPLIER) >> np.uint64(32)
        slot = (hashed % np.uint64(self.slots)).astype(np.int64)
        free = (self.owner[slot] < 0) & (groups >= 0)
        self.owner[slot[free]] = groups[free]
        owned = (self.owner[slot] == groups) & (groups >= 0)
        return np.where(owned, slot, self.slots).astype(np.int32)

    def add(
        self, block: int, groups: Int[np.ndarray, " entries"], x: Float[Array, "entries heads"]
    ) -> None:
        """Add the entries of some sentences to one block."""
        slot = self.index(groups.reshape(-1))
        self.counts[block] += np.bincount(slot, minlength=self.slots + 1)[:-1]
        first = block * (self.slots + 1)
        self.sums, self.squares = _add(self.sums, self.squares, first, slot, x)

    def content(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return counts, sums and squares of all slots; the first two by block."""
        heads = self.sums.shape[1]
        sums = np.asarray(self.sums).reshape(-1, self.slots + 1, heads)[:, :-1]
        return self.counts, sums, np.asarray(self.squares)[:-1]


@partial(jax.jit, donate_argnums=(0, 1))
def _add(sums: Array, squares: Array, first: Array, slot: Array, x: Array) -> tuple[Array, Array]:
    return sums.at[first + slot].add(x), squares.at[slot].add(x**2)


def explained_variance(
    counts: Float[np.ndarray, "blocks groups"],
    sums: Float[np.ndarray, "blocks groups heads"],
    leave_out: bool = True,
) -> Float[np.ndarray, "estimates heads"]:
    """Estimate the variance that groups explain, without bias; then with each block left out.

    With n_g entries x in group g, the variance is ``sum_g n_g E[x | g]^2/sum_g n_g``. The square is
    the mean of products of entries in different blocks,

        E[x | g]^2 = sum_{b != b'} S_gb S_gb'/sum_{b != b'} n_gb n_gb',

    whose factors are independent. Groups in one block only are left out.
    """
    total_count, total = counts.sum(axis=0), sums.sum(axis=0, dtype=np.float64)
    pairs = total_count**2 - np.einsum("bg,bg->g", counts, counts)
    products = total**2
    for block in sums:
        products -= block.astype(np.float64) ** 2
    rows = [_mean_square(total_count, pairs, products)]
    for count, block in zip(counts, sums, strict=True) if leave_out else ():
        # Products without block b: (S - S_b)^2 - (sum of squares - S_b^2).
        others = products - 2 * block * (total - block)
        rows.append(
            _mean_square(total_count - count, pairs - 2 * count * (total_count - count), others)
        )
    return np.stack(rows)


def _mean_square(count: np.ndarray, pairs: np.ndarray, products: np.ndarray) -> np.ndarray:
    usable = pairs > 0
    if not usable.any():
        return np.full(products.shape[1], np.nan)
    weight = np.where(usable, count / np.where(usable, pairs, 1), 0)
    return weight @ products / count[usable].sum()
