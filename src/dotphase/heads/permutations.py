"""Permutation tests of the two shares, and distances, on a sample of the sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.heads.source import MAX_SYMBOLS
from dotphase.heads.tables import NO_VARIANCE, entry_groups, explained_variance

#: Most sentences of the sample, and its memory in bytes.
SAMPLE_SENTENCES, SAMPLE_BYTES = 512, 2**27
#: Sweeps of the fit of a content-only kernel; each divides the error by the number of keys.
SWEEPS = 12


@dataclass(frozen=True)
class Sample:
    """Sentences in memory: centered log attention, allowed keys, groups, blocks."""

    x: Float[np.ndarray, "sentences queries keys heads"]
    allowed: Bool[np.ndarray, "sentences queries keys"]
    tokens: tuple[Int[np.ndarray, "sentences positions"], ...]
    block: Int[np.ndarray, " sentences"]

    def groups(self, order: Any = slice(None)) -> dict[str, np.ndarray]:
        """Group of each entry by positions and by tokens, of the sentences in the given order."""
        tokens = tuple(part[order] for part in self.tokens)
        groups = entry_groups(self.allowed.shape, tokens, MAX_SYMBOLS)
        return {name: groups[name] for name in ("positional", "semantic") if name in groups}


def permutation_test(
    sample: Sample, draws: int, seed: int
) -> tuple[dict[str, Float[np.ndarray, " heads"]], dict[str, Float[np.ndarray, " heads"]]]:
    """Means and spreads of shares with permuted positions and permuted tokens; p-values by rank.

    Positions: the values of each row are permuted among its allowed keys. Tokens: sentences with
    the same allowed keys exchange their tokens. Both leave everything else as it is, so that the
    rank of the share among all has a known distribution without a mechanism.
    """
    rng = np.random.default_rng(seed)
    draw = {"positional": _permute_positions, "semantic": _permute_tokens}
    variance = np.where(sample.allowed[..., None], sample.x**2, 0).sum(axis=(0, 1, 2))
    variance = np.maximum(variance / sample.allowed.sum(), NO_VARIANCE)
    null: dict[str, np.ndarray] = {}
    p_value = {"semantic": np.full(variance.shape, np.nan)}
    for name, groups in sample.groups().items():
        share = _explained(sample, groups, sample.x) / variance
        permuted = np.stack([_explained(sample, *draw[name](sample, rng)) for _ in range(draws)])
        permuted /= variance
        null |= {name: permuted.mean(axis=0), f"{name}_spread": permuted.std(axis=0, ddof=1)}
        # NaN compares false; a sample without recurring groups contradicts nothing.
        p_value[name] = (1 + (~(permuted < share)).sum(axis=0)) / (1 + draws)
    return null, p_value


def _permute_positions(sample: Sample, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of positions, and values that are permuted in each row."""
    keys = np.where(sample.allowed, rng.random(sample.allowed.shape), 2.0)
    values = np.take_along_axis(sample.x, keys.argsort(axis=-1)[..., None], axis=2)
    # Values of the allowed keys come first: back to their positions.
    rank = np.argsort(~sample.allowed, axis=-1, kind="stable").argsort(axis=-1)
    return sample.groups()["positional"], np.take_along_axis(values, rank[..., None], axis=2)


def _permute_tokens(sample: Sample, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of tokens that sentences with the same allowed keys exchange, and values."""
    shapes = sample.allowed.reshape(len(sample.x), -1)
    shape = np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.empty_like(shape)
    order[np.argsort(shape, kind="stable")] = np.lexsort((rng.random(len(shape)), shape))
    return sample.groups(order)["semantic"], sample.x


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
    result = {}
    for name, group in sample.groups().items():
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
    rows = rest[:, None] & (sample.allowed.sum(axis=-1) > 1)
    measured, kernel = (
        jax.nn.softmax(scores, axis=1, where=sample.allowed[rows][..., None])
        for scores in (sample.x[rows], g[slot[rows]])
    )
    return 0.5 * np.abs(measured - kernel).sum(axis=1).mean(axis=0)
