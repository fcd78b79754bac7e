"""One pass over the sentences: sums by block and group, patterns, and a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dotphase.errors import InvalidInput
from dotphase.heads.measure import PATTERN_NAMES, Measured, measure
from dotphase.heads.permutations import SAMPLE_BYTES, SAMPLE_SENTENCES, Sample
from dotphase.heads.settings import MAX_SYMBOLS, ShareSettings
from dotphase.heads.source import ATTENTION, TOKENS, Chunk
from dotphase.heads.tables import GroupTable

#: Largest difference of the sum of a row of attention from one.
ROW_TOLERANCE = 0.05


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
        blocks, heads = settings.blocks, chunk.attention.shape[1]
        size = blocks, heads, settings.table_bytes
        self.settings, self.shape, self.entry_shape = (
            settings,
            chunk.shape,
            chunk.attention.shape[1:],
        )
        cells, symbols = chunk.allowed[0].size, settings.symbols
        self.pairs = None if symbols is None else symbols**2
        self.tables = {}
        if chunk.query_tokens is not None:
            if cells * (symbols or MAX_SYMBOLS) ** 2 >= 2**63:  # groups are numbered in int64
                rule = (
                    f"must be at most {math.isqrt(2**63 // cells)} for {cells} pairs of positions"
                )
                raise InvalidInput("symbols", symbols, rule)
            both = GroupTable(self.pairs and cells * self.pairs, *size)
            self.tables["both"] = both
            if not both.dense:
                self.tables["semantic"] = GroupTable(self.pairs, *size)
        if "both" not in self.tables or not self.tables["both"].dense:
            self.tables["positional"] = GroupTable(cells, *size)
        self.squares, self.entries = np.zeros((blocks, heads)), np.zeros(blocks)
        patterns = len(PATTERN_NAMES)
        self.weights, self.uniform = np.zeros((patterns, heads)), np.zeros(patterns)
        self.rows, self.sentences = np.zeros(patterns), 0
        self.numbers: dict[int, int] = {}
        self._sample: list[tuple[Any, ...]] = []

    def add(self, block: int, chunk: Chunk) -> None:
        """Add some sentences to a block."""
        tokens = self._number(chunk.query_tokens), self._number(chunk.key_tokens)
        same = np.zeros(chunk.allowed.shape, bool)
        if tokens[0] is not None and tokens[1] is not None:
            same = tokens[0][:, :, None] == tokens[1][:, None, :]
        settings, allowed = self.settings, chunk.allowed
        entries = allowed if settings.diagonal else allowed & (np.eye(*allowed.shape[1:]) == 0)
        measured = measure(chunk.attention, allowed, same, entries, settings.floor, settings.scores)
        _check(measured)
        x = measured.x.reshape(-1, measured.x.shape[-1])
        for name, groups in self._groups(entries, *tokens).items():
            self.tables[name].add(block, np.where(entries, groups, -1), x)
        self.squares[block] += measured.square
        self.entries[block] += entries.sum()
        self.weights += measured.weights
        self.uniform += measured.uniform
        self.rows += measured.rows
        self.sentences += len(allowed)
        self._add_to_sample(measured.x, entries, *tokens)

    def _number(self, tokens: np.ndarray | None) -> np.ndarray | None:
        """Number the tokens in the order in which they first occur."""
        if tokens is None:
            return None
        names, inverse = np.unique(tokens, return_inverse=True)
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in names.tolist()]
        if len(self.numbers) > (self.settings.symbols or MAX_SYMBOLS):
            rule = f"must be at most {self.settings.symbols or MAX_SYMBOLS} (symbols)"
            raise InvalidInput(TOKENS, f"{len(self.numbers)} different tokens", rule)
        return np.asarray(numbers, np.int64)[inverse.reshape(tokens.shape)]

    def _groups(
        self, allowed: np.ndarray, query: np.ndarray | None, key: np.ndarray | None
    ) -> Mapping[str, np.ndarray]:
        """Group of every entry for each table."""
        positions = np.arange(allowed[0].size).reshape(allowed.shape[1:])
        groups = {"positional": np.broadcast_to(positions, allowed.shape)}
        if query is not None and key is not None:
            symbols = self.settings.symbols or MAX_SYMBOLS
            pairs = symbols * query[:, :, None] + key[:, None, :]
            groups |= {"semantic": pairs, "both": symbols**2 * positions + pairs}
        return {name: groups[name] for name in self.tables}

    def _add_to_sample(self, x: Any, allowed: np.ndarray, *tokens: np.ndarray | None) -> None:
        """Add the first sentences of the chunk to the sample."""
        max_sentences = max(min(SAMPLE_SENTENCES, SAMPLE_BYTES // (4 * x[0].size)), 16)
        n_free = max_sentences - sum(len(rows) for rows, *_ in self._sample if rows is not None)
        count = min(-(-max_sentences // self.settings.blocks), n_free)
        if count > 0:
            parts = (np.asarray(x[:count]), allowed, *tokens)
            self._sample.append(tuple(None if part is None else part[:count] for part in parts))

    def sample(self) -> Sample:
        """Return the sentences that were kept."""
        columns = zip(*self._sample, strict=True)
        x, allowed, query, key = (None if c[0] is None else np.concatenate(c) for c in columns)
        assert x is not None and allowed is not None
        return Sample(x, allowed, query, key, np.arange(len(x)) % self.settings.blocks)

    def factors(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return counts, sums and squares by block and group: of positions, of tokens, of both."""
        parts = {name: table.content() for name, table in self.tables.items()}
        if "both" in parts and "positional" not in parts:
            assert self.pairs is not None
            for name, axis in (("positional", 2), ("semantic", 1)):
                counts, sums, squares = parts["both"]
                shape = -1, counts.shape[1] // self.pairs, self.pairs
                heads = sums.shape[-1]
                parts[name] = (
                    counts.reshape(shape).sum(axis),
                    sums.reshape(*shape, heads).sum(axis, dtype=np.float64),
                    squares.reshape(*shape[1:], heads).sum(axis - 1, dtype=np.float64),
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
