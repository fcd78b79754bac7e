"""Groups of entries: sums of log attention in constant memory, permutation tests, distances.

An entry is one query and one key of one sentence. Groups are pairs of positions, ordered pairs of
tokens, or both. Sentences are divided into blocks; each group has one sum for each block and head.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int
from scipy.special import softmax

from dotphase.heads.source import MAX_SYMBOLS

#: Odd multiplier of the hash: 2^64 divided by the golden ratio.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
#: Variance of log attention below which a head is uniform: it has no share but the rest.
NO_VARIANCE = 1e-10
#: Blocks of the sample.
SAMPLE_BLOCKS = 8
#: Sweeps of the fit of a content-only kernel; each divides the error by the number of keys.
SWEEPS = 12


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
        slots = max(size // (4 * blocks * (heads + 1)), 1)
        self.dense, self.slots = groups <= slots, min(groups, slots)
        self.owner = None if self.dense else np.full(self.slots, -1, np.int64)
        self.counts = np.zeros((blocks, self.slots), np.int32)
        # One more slot receives entries that are left out.
        self.sums = jnp.zeros((blocks, self.slots + 1, heads), jnp.float32)
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

    def add(self, block: int, groups: np.ndarray, x: Float[Array, "entries heads"]) -> None:
        """Add entries to one block."""
        slot = self.index(groups.reshape(-1))
        self.counts[block] += np.bincount(slot, minlength=self.slots + 1)[:-1]
        self.sums, self.squares = _add(self.sums, self.squares, block, slot, x)

    def content(self) -> list[Float[np.ndarray, "blocks groups heads"]]:
        """Return counts (for one head), sums and squares (over all blocks) of all slots."""
        sums, squares = np.asarray(self.sums), np.asarray(self.squares)[None]
        return [self.counts[..., None], sums[:, :-1], squares[:, :-1]]


@partial(jax.jit, donate_argnums=(0, 1))
def _add(sums: Array, squares: Array, block: Array, slot: Array, x: Array) -> tuple[Array, Array]:
    return sums.at[block, slot].add(x), squares.at[slot].add(x**2)


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
    count, total = counts.sum(axis=0), sums.sum(axis=0, dtype=np.float64)
    pairs = count**2 - np.einsum("bg,bg->g", counts, counts, dtype=np.float64)
    products = total**2
    for block in sums:
        products -= block.astype(np.float64) ** 2
    estimates = []
    blocks = zip(counts, sums, strict=True) if leave_out else ()
    for n, block in [(np.zeros_like(count), np.zeros_like(total)), *blocks]:
        # Products without block b: (S - S_b)^2 - (sum of squares - S_b^2).
        others, n_others = products - 2 * block * (total - block), pairs - 2 * n * (count - n)
        usable = n_others > 0
        weight = np.where(usable, (count - n) / np.where(usable, n_others, 1), 0)
        estimates.append(weight @ others / ((count - n)[usable].sum() or np.nan))
    return np.stack(estimates)


class Sample(NamedTuple):
    """Sentences in memory: centered log attention, allowed keys, numbered tokens."""

    x: Float[np.ndarray, "sentences queries keys heads"]
    allowed: Bool[np.ndarray, "sentences queries keys"]
    tokens: tuple[Int[np.ndarray, "sentences positions"], ...]

    def groups(self, name: str) -> Int[np.ndarray, "sentences queries keys"]:
        """Groups of the entries, "positional" or "semantic"."""
        return entry_groups(self.allowed.shape, self.tokens, MAX_SYMBOLS)[name]


def permutation_test(
    sample: Sample, draws: int, seed: int
) -> tuple[dict[str, Float[np.ndarray, " heads"]], dict[str, Float[np.ndarray, " heads"]]]:
    """Means and spreads of shares with permuted positions and permuted tokens; p-values by rank.

    Positions: permute the values of each row among its allowed keys. Tokens: exchange those of
    sentences with the same allowed keys. Without a mechanism all ranks are equally probable.
    """
    rng = np.random.default_rng(seed)
    variance = (sample.x**2).sum(axis=(0, 1, 2)) / sample.allowed.sum()
    variance = np.maximum(variance, NO_VARIANCE)
    null: dict[str, np.ndarray] = {}
    p_value = {"semantic": np.full(variance.shape, np.nan)}
    permute = {"positional": _permute_positions, "semantic": _permute_tokens}
    for name in list(permute)[: 2 if sample.tokens else 1]:
        share = _explained(sample, name) / variance
        permuted = np.stack([_explained(permute[name](sample, rng), name) for _ in range(draws)])
        permuted /= variance
        null |= {name: permuted.mean(axis=0), f"{name}_spread": permuted.std(axis=0, ddof=1)}
        # NaN compares false; a sample without recurring groups contradicts nothing.
        p_value[name] = (1 + (~(permuted < share)).sum(axis=0)) / (1 + draws)
    return null, p_value


def _permute_positions(sample: Sample, rng: np.random.Generator) -> Sample:
    """Permute the values of each row among its allowed keys."""
    keys = np.where(sample.allowed, rng.random(sample.allowed.shape), 2.0)
    values = np.take_along_axis(sample.x, keys.argsort(axis=-1)[..., None], axis=2)
    first = np.arange(keys.shape[-1]) < sample.allowed.sum(axis=-1, keepdims=True)
    x = np.zeros_like(sample.x)
    x[sample.allowed] = values[first]
    return sample._replace(x=x)


def _permute_tokens(sample: Sample, rng: np.random.Generator) -> Sample:
    """Exchange the tokens of sentences with the same allowed keys."""
    shape = pd.factorize(np.array([allowed.tobytes() for allowed in sample.allowed], object))[0]
    order = np.empty_like(shape)
    order[np.argsort(shape, kind="stable")] = np.lexsort((rng.random(len(shape)), shape))
    return sample._replace(tokens=tuple(part[order] for part in sample.tokens))


def _sum_by_slot(index: np.ndarray, x: np.ndarray, slots: int) -> np.ndarray:
    columns = [np.bincount(index, column, minlength=slots) for column in x.T]
    return np.stack(columns, axis=-1).astype(np.float32)


def _explained(sample: Sample, name: str) -> Float[np.ndarray, " heads"]:
    """Variance that groups explain in the sample."""
    slot, names = pd.factorize(sample.groups(name)[sample.allowed])
    block = np.arange(len(sample.x)) % SAMPLE_BLOCKS
    index = np.repeat(block, sample.allowed.sum(axis=(1, 2))) * len(names) + slot
    counts = np.bincount(index, minlength=SAMPLE_BLOCKS * len(names))
    sums = _sum_by_slot(index, sample.x[sample.allowed], counts.size)
    shape = SAMPLE_BLOCKS, len(names), -1
    return explained_variance(counts.reshape(shape[:2]), sums.reshape(shape), leave_out=False)[0]


def distances(sample: Sample) -> dict[str, Float[np.ndarray, " heads"]]:
    """Total variation distances to attention by positions alone, and by content alone.

    The best positional matrix is ``exp g(i, j)`` and the best content-only kernel ``exp g(a, b)``,
    normalized over the allowed keys, with g fitted to log attention by least squares with a free
    constant in every row. Each half of the sentences is fitted, and the other one measured. Pairs
    of tokens that do not occur in the fitted half have g = 0.
    """
    half = np.arange(len(sample.x)) % 2 == 0
    result = {}
    for name in ("positional", "semantic")[: 2 if sample.tokens else 1]:
        slot = np.unique(sample.groups(name), return_inverse=True)[1].reshape(sample.allowed.shape)
        parts = [_kernel_distance(sample, slot, fitted) for fitted in (half, ~half)]
        result[name] = np.mean(parts, axis=0)
    return result


def _kernel_distance(sample: Sample, slot: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    mask, x, of_entry = sample.allowed[fitted], sample.x[fitted], slot[fitted]
    slots, index = slot.max() + 1, of_entry[mask]
    keys = np.maximum(mask.sum(axis=2), 1)[..., None, None].astype(np.float32)
    g = np.zeros((slots, x.shape[-1]), np.float32)
    count = np.maximum(np.bincount(index, minlength=slots), 1)[:, None].astype(np.float32)
    for _ in range(SWEEPS):
        mean = np.where(mask[..., None], g[of_entry], 0).sum(axis=2, keepdims=True) / keys
        g = _sum_by_slot(index, (x + mean)[mask], slots) / count
    rows = ~fitted[:, None] & (sample.allowed.sum(axis=-1) > 1)
    measured, kernel = (
        softmax(np.where(sample.allowed[rows][..., None], scores, -np.inf), axis=1)
        for scores in (sample.x[rows], g[slot[rows]])
    )
    return 0.5 * np.abs(measured - kernel).sum(axis=1).mean(axis=0)
