"""One pass over the sentences: sums by block and group, patterns, and a sample."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dotphase.errors import InvalidInput
from dotphase.heads.groups import GroupTable, Sample, entry_groups
from dotphase.heads.source import ATTENTION, BLOCKS, MAX_SYMBOLS, TOKENS, Chunk, ShareSettings

#: Largest difference of the sum of a row of attention from one.
ROW_TOLERANCE = 0.05
#: Most sentences of the sample, and its memory in bytes.
SAMPLE_SENTENCES, SAMPLE_BYTES = 512, 2**26
#: Order of the patterns in arrays.
PATTERN_NAMES = ("previous", "diagonal", "first", "duplicate", "entropy")


class Measured(NamedTuple):
    """Measurements of a chunk; the last head of `weights` is uniform attention."""

    x: Float[Array, "sentences queries keys heads"]  # log attention minus its mean in the row
    square: Float[Array, " heads"]  # sum of x^2
    weights: Float[Array, "patterns heads"]  # sums over rows
    rows: Float[Array, " patterns"]  # their number; for the entropy: the sum of its largest values
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
    """Measure a chunk, x on the entries only, with weights raised to the floor."""
    mask, keys = allowed[:, None], allowed.sum(axis=-1, keepdims=True)
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
    row_error = jnp.where(mask.any(axis=-1), jnp.abs(attention.sum(axis=-1) - 1), 0)
    query, key = jnp.arange(allowed.shape[1])[:, None], jnp.arange(allowed.shape[2])
    diagonal = key == query
    patterns = [key == query - 1, diagonal, (key == 0) & (query > 0), same_token & ~diagonal]
    patterns = [keys_of & allowed & (keys > 1) for keys_of in patterns]
    uniform = jnp.where(mask, 1 / jnp.maximum(keys, 1)[:, None], 0)
    every = jnp.concatenate([attention, uniform], axis=1)
    weights = [jnp.einsum("shqk,sqk->h", every, keys_of) for keys_of in patterns]
    rows = [keys_of.any(axis=-1).sum() for keys_of in patterns]
    entropy = jax.scipy.special.entr(every).sum(axis=(0, 2, 3))
    return Measured(
        x=jnp.moveaxis(x, 1, -1),
        square=(x**2).sum(axis=(0, 2, 3)),
        weights=jnp.stack([*weights, entropy]),
        rows=jnp.stack([*rows, entropy[-1]]),
        row_error=row_error.max(),
    )


class Collected:
    """Sums over all sentences: by group, of squares and entries by block, and of patterns."""

    def __init__(self, chunk: Chunk, settings: ShareSettings) -> None:
        self.settings, self.shape = settings, chunk.shape
        self.entry_shape, self.cells = chunk.attention.shape[1:], chunk.allowed[0].size
        heads = chunk.attention.shape[1]
        # Groups are numbered in int64.
        self.symbols = min(settings.symbols or MAX_SYMBOLS, math.isqrt((2**63 - 1) // self.cells))
        groups = {"positional": self.cells}
        if chunk.tokens:
            groups |= {"semantic": self.symbols**2, "both": self.cells * self.symbols**2}
        size = BLOCKS, heads, settings.table_bytes
        self.tables = {name: GroupTable(count, *size) for name, count in groups.items()}
        if "both" in self.tables and self.tables["both"].dense:
            self.tables = {"both": self.tables["both"]}  # contains the sums of the others
        self.squares, self.entries = np.zeros((BLOCKS, heads)), np.zeros(BLOCKS)
        self.rows = np.zeros(len(PATTERN_NAMES))
        self.weights = np.zeros((len(PATTERN_NAMES), heads + 1))
        self.sentences, self.numbers = 0, dict[int, int]()
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
        if not np.isfinite(measured.square).all():
            rule = (
                "must be finite and positive; pass mask= of allowed keys, floor=1e-9 or scores=True"
            )
            raise InvalidInput(ATTENTION, "zero, negative or not finite", rule)
        if measured.row_error > ROW_TOLERANCE:
            rule = "must sum to one over the allowed keys of a row, or pass scores=True"
            raise InvalidInput(ATTENTION, f"a row sum {measured.row_error:.2g} off one", rule)
        x = measured.x.reshape(-1, measured.x.shape[-1])
        groups = entry_groups(allowed.shape, tokens, self.symbols)
        for name, table in self.tables.items():
            table.add(block, np.where(entries, groups[name], -1), x)
        self.squares[block] += np.asarray(measured.square)
        self.entries[block] += entries.sum()
        self.weights += np.asarray(measured.weights)
        self.rows += np.asarray(measured.rows)
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
        max_sentences = max(min(SAMPLE_SENTENCES, SAMPLE_BYTES // (4 * x[0].size)), 8)
        n_free = max_sentences - sum(len(parts[-1]) for parts in self._sample)
        count = min(-(-max_sentences // BLOCKS), n_free)
        if count > 0:
            self._sample.append(tuple(np.asarray(part[:count]) for part in (*parts, x)))

    def sample(self) -> Sample:
        """Return the sentences that were kept."""
        allowed, *tokens, x = (np.concatenate(parts) for parts in zip(*self._sample, strict=True))
        return Sample(x, allowed, tuple(tokens))

    def factors(self) -> dict[str, list[np.ndarray]]:
        """Return counts, sums and squares by block and group: of positions, of tokens, of both."""
        parts = {name: table.content() for name, table in self.tables.items()}
        if "positional" not in parts:
            for name, axis in (("positional", 2), ("semantic", 1)):
                shape = self.cells, self.symbols**2, -1
                both = [part.reshape(len(part), *shape) for part in parts["both"]]
                parts[name] = [part.sum(axis, dtype=np.float64) for part in both]
        return parts


def collect(chunks: Iterator[Chunk], settings: ShareSettings) -> Collected:
    """Add all chunks, each to the next block."""
    collected: Collected | None = None
    for number, chunk in enumerate(chunks):
        collected = Collected(chunk, settings) if collected is None else collected
        if chunk.attention.shape[1:] != collected.entry_shape:
            raise InvalidInput(ATTENTION, f"shape {chunk.shape}", "must have one shape throughout")
        collected.add(number % BLOCKS, chunk)
    if collected is None or (collected.entries > 0).sum() < 3:
        rule = "must have three or more sentences with allowed keys"
        raise InvalidInput(ATTENTION, "fewer than three sentences", rule)
    if not collected.rows[-1]:
        rule = "must have rows with more; for weights of zero pass mask=(query, key) and floor=1e-9"
        raise InvalidInput(ATTENTION, "one allowed key in every row", rule)
    return collected
