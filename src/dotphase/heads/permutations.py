"""Permutation tests of the two shares, and distances, on a sample of the sentences."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.heads.tables import explained_variance

#: Most sentences of the sample, and its memory in bytes.
SAMPLE_SENTENCES, SAMPLE_BYTES = 512, 2**27
#: Sweeps of the fit of a content-only kernel; each divides the error by the number of keys.
SWEEPS = 12
#: Smallest mean attention weight, and sum of weights.
SMALLEST_WEIGHT = 1e-30


@dataclass(frozen=True)
class Sample:
    """Sentences in memory: centered log attention, allowed keys, groups, blocks."""

    x: Float[np.ndarray, "sentences queries keys heads"]
    allowed: Bool[np.ndarray, "sentences queries keys"]
    query_tokens: Int[np.ndarray, "sentences queries"] | None
    key_tokens: Int[np.ndarray, "sentences keys"] | None
    block: Int[np.ndarray, " sentences"]

    @property
    def positions(self) -> Int[np.ndarray, "sentences queries keys"]:
        """Group of each entry by its pair of positions."""
        shape = self.allowed.shape
        return np.broadcast_to(np.arange(shape[1] * shape[2]).reshape(shape[1:]), shape)

    def pairs(self, order: Int[np.ndarray, " sentences"] | None = None) -> np.ndarray:
        """Group of each entry by its pair of tokens, of the sentences in the given order."""
        assert self.query_tokens is not None and self.key_tokens is not None
        rows = np.arange(len(self.x)) if order is None else order
        symbols = 1 + int(max(self.key_tokens.max(), self.query_tokens.max()))
        return symbols * self.query_tokens[rows][:, :, None] + self.key_tokens[rows][:, None, :]


def permutation_null(
    sample: Sample, draws: int, seed: int
) -> dict[str, Float[np.ndarray, "estimates heads"]]:
    """Explained variances of the sample, then with permuted positions and permuted tokens.

    Positions: the values of each row are permuted among its allowed keys. Tokens: sentences with
    the same allowed keys exchange their tokens. Both leave everything else as it is, so that the
    rank of the first estimate among all has a known distribution without a mechanism.
    """
    rng = np.random.default_rng(seed)
    positions = [_explained(sample, sample.positions, sample.x)]
    for _ in range(draws):
        keys = np.where(sample.allowed, rng.random(sample.allowed.shape), 2.0)
        values = np.take_along_axis(sample.x, keys.argsort(axis=-1)[..., None], axis=2)
        # Values of the allowed keys come first: back to their positions.
        allowed_rank = np.argsort(~sample.allowed, axis=-1, kind="stable").argsort(axis=-1)
        values = np.take_along_axis(values, allowed_rank[..., None], axis=2)
        positions.append(_explained(sample, sample.positions, values))
    result = {"positional": np.stack(positions)}
    if sample.query_tokens is not None:
        shapes = sample.allowed.reshape(len(sample.x), -1)
        _, shape = np.unique(shapes, axis=0, return_inverse=True)
        donors = np.argsort(shape.reshape(-1), kind="stable")
        orders = [np.arange(len(sample.x))]
        for _ in range(draws):
            order = np.empty_like(donors)
            order[donors] = np.lexsort((rng.random(len(donors)), shape.reshape(-1)))
            orders.append(order)
        result["semantic"] = np.stack(
            [_explained(sample, sample.pairs(order), sample.x) for order in orders]
        )
    return result


@jax.jit
def _sum_into(table: jax.Array, slot: jax.Array, x: jax.Array) -> jax.Array:
    return table.at[slot].add(x)


def _explained(sample: Sample, groups: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Variance that groups explain in the sample."""
    entries = sample.allowed.reshape(-1)
    names, slot = np.unique(groups.reshape(-1)[entries], return_inverse=True)
    blocks, heads = 1 + int(sample.block.max()), x.shape[-1]
    of_entry = np.repeat(sample.block, sample.allowed[0].size)[entries]
    index = of_entry * len(names) + slot
    counts = np.bincount(index, minlength=blocks * len(names)).reshape(blocks, -1)
    table = np.zeros((counts.size, heads), np.float32)
    sums = np.asarray(_sum_into(table, index, x.reshape(-1, heads)[entries]))
    return explained_variance(counts, sums.reshape(blocks, -1, heads), leave_out=False)[0]


def distances(sample: Sample) -> dict[str, Float[np.ndarray, " heads"]]:
    """Total variation distances to attention by positions alone, and by content alone.

    The best positional matrix is ``exp g(i, j)`` and the best content-only kernel ``exp g(a, b)``,
    normalized over the allowed keys, with g fitted to log attention by least squares with a free
    constant in every row. A half of the sentences is fitted and the other measured, and the
    reverse. Pairs of tokens that do not occur in the fitted half have g = 0.
    """
    half = np.arange(len(sample.x)) % 2 == 0
    groups = {"positional": sample.positions}
    if sample.query_tokens is not None:
        groups["semantic"] = sample.pairs()
    result = {}
    for name, group in groups.items():
        _, slot = np.unique(group, return_inverse=True)
        slot = slot.reshape(sample.allowed.shape)
        parts = [_kernel_distance(sample, slot, one, ~one) for one in (half, ~half)]
        result[name] = np.mean(parts, axis=0)
    return result


def _kernel_distance(
    sample: Sample, slot: np.ndarray, fitted: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    mask, heads = sample.allowed[fitted], sample.x.shape[-1]
    x, of_entry = sample.x[fitted], slot[fitted]
    index = of_entry[mask]
    keys = np.maximum(mask.sum(axis=2), 1)[..., None, None]
    g = np.zeros((slot.max() + 1, heads), np.float32)
    count = np.maximum(np.bincount(index, minlength=len(g)), 1)[:, None]
    for _ in range(SWEEPS):
        mean = np.where(mask[..., None], g[of_entry], 0).sum(axis=2, keepdims=True) / keys
        total = _sum_into(np.zeros_like(g), index, (x + mean.astype(np.float32))[mask])
        g = np.asarray(total) / count.astype(np.float32)
    allowed = sample.allowed[rest]
    difference = _normalize(sample.x[rest], allowed) - _normalize(g[slot[rest]], allowed)
    rows = allowed.sum(axis=-1) > 1
    return 0.5 * np.abs(difference)[rows].sum(axis=1).mean(axis=0)


def _normalize(log_weights: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax over the allowed keys, zero in rows without any."""
    scores = np.where(allowed[..., None], log_weights, -np.inf)
    top = np.maximum(scores.max(axis=2, keepdims=True), -1e30)
    weights = np.exp(scores - top)
    return weights / np.maximum(weights.sum(axis=2, keepdims=True), SMALLEST_WEIGHT)
