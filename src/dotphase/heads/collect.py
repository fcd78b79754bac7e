"""One pass over the sentences: sums by block and group, patterns, and a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dotphase.errors import InvalidInput
from dotphase.heads.permutations import SAMPLE_BYTES, SAMPLE_SENTENCES, Sample
from dotphase.heads.source import ATTENTION, MAX_SYMBOLS, TOKENS, Chunk, ShareSettings
from dotphase.heads.tables import GroupTable, entry_groups

#: Largest difference of the sum of a row of attention from one.
ROW_TOLERANCE = 0.05
#: Order of the patterns in arrays.
PATTERN_NAMES = ("previous", "diagonal", "first", "duplicate", "entropy")


class Measured(NamedTuple):
    """Measurements of a chunk: patterns, with `weights` as sums over `rows`, and the following."""

    x: Float[Array, "sentences queries keys heads"]  # log attention minus its mean in the row
    square: Float[Array, " heads"]  # sum of x^2
    weights: Float[Array, "patterns heads"]
    uniform: Float[Array, " patterns"]  # the same for uniform attention
    rows: Float[Array, " patterns"]  # for the entropy: the sum of its largest values
    row_error: Float[Array, ""]  # largest difference of a row sum from one


@partial(jax.jit, static_argnames="scores")
def measure(
    attention: Float[Array, "sentences heads queries keys"],
    allowed: Bool[Array, "sentences queries keys"],
    same_token: Bool[Array, "sentences queries keys"],
    entries: Bool[Array, "sentences queries keys"],
    floor: Float[Array, ""],
    scores: bool,
) -> Measured:
    """Measure a chunk, x on the entries only.

    Weights below the floor are raised to it before the logarithm.
    """
    mask, keys = allowed[:, None], allowed.sum(axis=-1)
    if scores:
        attention = jnp.where(mask, attention, -jnp.inf)
        log_weights = jax.nn.log_softmax(attention, axis=-1, where=mask)
        attention = jnp.exp(log_weights)
    else:
        log_weights = jnp.log(jnp.maximum(attention, floor))
    attention, log_weights = jnp.where(mask, attention, 0), jnp.where(mask, log_weights, 0)
    included = entries[:, None]
    total = jnp.where(included, log_weights, 0).sum(axis=-1, keepdims=True)
    x = log_weights - total / jnp.maximum(included.sum(axis=-1, keepdims=True), 1)
    x = jnp.where(included, x, 0)
    row_error = jnp.where((keys > 0)[:, None], jnp.abs(attention.sum(axis=-1) - 1), 0)
    query, key = jnp.arange(allowed.shape[1])[:, None], jnp.arange(allowed.shape[2])
    diagonal = key == query
    patterns = [key == query - 1, diagonal, (key == 0) & (query > 0), same_token & ~diagonal]
    patterns = [keys_of & allowed & (keys > 1)[..., None] for keys_of in patterns]
    weights = [jnp.einsum("shqk,sqk->h", attention, keys_of) for keys_of in patterns]
    share = 1 / jnp.maximum(keys, 1)[..., None]
    uniform = [jnp.where(keys_of, share, 0).sum() for keys_of in patterns]
    rows = [keys_of.any(axis=-1).sum() for keys_of in patterns]
    log_keys = jnp.log(jnp.maximum(keys, 1)).sum()
    entropy = -(attention * log_weights).sum(axis=(0, 2, 3))
    return Measured(
        x=jnp.moveaxis(x, 1, -1),
        square=(x**2).sum(axis=(0, 2, 3)),
        weights=jnp.stack([*weights, entropy]),
        uniform=jnp.stack([*uniform, log_keys]),
        rows=jnp.stack([*rows, log_keys]),
        row_error=row_error.max(),
    )


class Collected:
    """Sums over all sentences.

    Attributes
    ----------
    shape : shape of the heads
    tables : sums by group: of positions, of tokens, and of both
    squares, entries : sum of squares and number of entries of each block
    weights, uniform, rows : sums of the patterns
    sentences : number of sentences
    """

    def __init__(self, chunk: Chunk, settings: ShareSettings) -> None:
        self.settings, self.shape = settings, chunk.shape
        self.entry_shape, self.cells = chunk.attention.shape[1:], chunk.allowed[0].size
        blocks, heads = settings.blocks, chunk.attention.shape[1]
        self.symbols = settings.symbols or MAX_SYMBOLS
        groups = {"positional": self.cells}
        if chunk.tokens:
            pairs = self.symbols**2
            if self.cells * pairs >= 2**63:  # groups are numbered in int64
                rule = f"must be at most {math.isqrt(2**63 // self.cells)}"
                rule += f" for {self.cells} pairs of positions"
                raise InvalidInput("symbols", settings.symbols, rule)
            groups |= {"semantic": pairs, "both": self.cells * pairs}
        size = blocks, heads, settings.table_bytes
        self.tables = {name: GroupTable(count, *size) for name, count in groups.items()}
        if "both" in self.tables and self.tables["both"].dense:
            self.tables = {"both": self.tables["both"]}  # contains the sums of the others
        self.squares, self.entries = np.zeros((blocks, heads)), np.zeros(blocks)
        patterns = len(PATTERN_NAMES)
        self.weights, self.uniform = np.zeros((patterns, heads)), np.zeros(patterns)
        self.rows, self.sentences = np.zeros(patterns), 0
        self.numbers: dict[int, int] = {}
        self._sample: list[tuple[np.ndarray, ...]] = []

    def add(self, block: int, chunk: Chunk) -> None:
        """Add some sentences to a block."""
        tokens = tuple(self._number(part) for part in chunk.tokens)
        same = np.zeros(chunk.allowed.shape, bool)
        if tokens:
            same = tokens[0][:, :, None] == tokens[1][:, None, :]
        settings, allowed = self.settings, chunk.allowed
        entries = allowed if settings.diagonal else allowed & (np.eye(*allowed.shape[1:]) == 0)
        measured = measure(chunk.attention, allowed, same, entries, settings.floor, settings.scores)
        _check(measured)
        x = measured.x.reshape(-1, measured.x.shape[-1])
        groups = entry_groups(allowed.shape, tokens, self.symbols)
        for name, table in self.tables.items():
            table.add(block, np.where(entries, groups[name], -1), x)
        self.squares[block] += measured.square
        self.entries[block] += entries.sum()
        self.weights += measured.weights
        self.uniform += measured.uniform
        self.rows += measured.rows
        self.sentences += len(allowed)
        self._add_to_sample(measured.x, entries, *tokens)

    def _number(self, tokens: np.ndarray) -> np.ndarray:
        """Number the tokens in the order in which they first occur."""
        names, inverse = np.unique(tokens, return_inverse=True)
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in names.tolist()]
        if len(self.numbers) > self.symbols:
            rule = f"must be at most {self.symbols} (symbols)"
            raise InvalidInput(TOKENS, f"{len(self.numbers)} different tokens", rule)
        return np.asarray(numbers, np.int64)[inverse.reshape(tokens.shape)]

    def _add_to_sample(self, x: Any, *parts: np.ndarray) -> None:
        """Add the first sentences of the chunk to the sample."""
        max_sentences = max(min(SAMPLE_SENTENCES, SAMPLE_BYTES // (4 * x[0].size)), 16)
        n_free = max_sentences - sum(len(parts[-1]) for parts in self._sample)
        count = min(-(-max_sentences // self.settings.blocks), n_free)
        if count > 0:
            self._sample.append(tuple(np.asarray(part[:count]) for part in (*parts, x)))

    def sample(self) -> Sample:
        """Return the sentences that were kept."""
        columns = zip(*self._sample, strict=True)
        allowed, *tokens, x = (np.concatenate(parts) for parts in columns)
        return Sample(x, allowed, tuple(tokens), np.arange(len(x)) % self.settings.blocks)

    def factors(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return counts, sums and squares by block and group: of positions, of tokens, of both."""
        parts = {name: table.content() for name, table in self.tables.items()}
        if "positional" not in parts:
            counts, sums, squares = parts["both"]
            shape = -1, self.cells, self.symbols**2
            for name, axis in (("positional", 2), ("semantic", 1)):
                parts[name] = (
                    counts.reshape(shape).sum(axis),
                    sums.reshape(*shape, sums.shape[-1]).sum(axis, dtype=np.float64),
                    squares.reshape(*shape, sums.shape[-1]).sum(axis, dtype=np.float64)[0],
                )
        return parts


def collect(chunks: Iterator[Chunk], settings: ShareSettings) -> Collected:
    """Add all chunks, each to the next block."""
    collected: Collected | None = None
    for number, chunk in enumerate(chunks):
        collected = Collected(chunk, settings) if collected is None else collected
        if chunk.attention.shape[1:] != collected.entry_shape:
            raise InvalidInput(ATTENTION, f"shape {chunk.shape}", "must have one shape throughout")
        collected.add(number % settings.blocks, chunk)
    if collected is None or (collected.entries > 0).sum() < 2:
        raise InvalidInput(ATTENTION, "fewer than two sentences", "must have two or more sentences")
    return collected


def _check(measured: Measured) -> None:
    """Refuse weights that are not finite, zero for an allowed key, or do not sum to one."""
    if not np.isfinite(measured.square).all():
        rule = "must be finite and positive for allowed keys; pass mask= and floor=1e-9, "
        rule += "or scores=True for scores before the softmax"
        raise InvalidInput(ATTENTION, "zero, negative or not finite", rule)
    if measured.row_error > ROW_TOLERANCE:
        rule = "must sum to one over the allowed keys of a row, or pass scores=True"
        raise InvalidInput(ATTENTION, f"a row sum {float(measured.row_error):.2g} off one", rule)
