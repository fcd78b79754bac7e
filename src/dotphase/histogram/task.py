"""The histogram task: count how often each token of a sequence occurs in it.

The counts of BBCCDDBBBB are 6622226666. Sequences are drawn uniformly, duplicates removed, and
split into training and held-out ones (arXiv:2402.03902: length 10, 15 symbols, 50,000
samples, 70/30).
"""

import string
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.runtime import memory_limit

#: Share of the sequences in the training set.
TRAIN_SHARE = 0.7


@dataclass(frozen=True)
class Task:
    """A number `samples` of sequences of `length` tokens over `symbols` symbols.

    Examples
    --------
    >>> dp.histogram.Task(symbols=3, length=4)
    Task(symbols=3, length=4, samples=50000)
    """

    symbols: int = 15
    length: int = 10
    samples: int = 50_000

    def __post_init__(self) -> None:
        validation.integer("symbols", self.symbols, at_least=2, at_most=len(string.ascii_uppercase))
        validation.integer("length", self.length, at_least=2)
        validation.integer("samples", self.samples, at_least=10)


class Split(NamedTuple):
    """Training and held-out sequences with their counts, as arrays of NumPy or JAX."""

    train: Int[Any, "train length"]
    train_counts: Int[Any, "train length"]
    held_out: Int[Any, "held_out length"]
    held_out_counts: Int[Any, "held_out length"]


def count(sequences: Int[np.ndarray, "n length"]) -> Int[np.ndarray, "n length"]:
    """Count how often each token occurs in its own sequence."""
    equal = sequences[:, :, None] == sequences[:, None, :]
    return equal.sum(axis=-1).astype(np.int32)


def draw(task: Task, seed: int = 0) -> Split:
    """Draw the sequences of a task; all runs of an experiment share them.

    Parameters
    ----------
    task : Task
        Symbols, length and number of sequences.
    seed : int
        Seed of the sequences and of their order.

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> split.train.shape, split.held_out.shape
    ((140, 10), (60, 10))
    """
    # Two copies of sequences and counts, and the comparison of all pairs of tokens.
    memory_limit.check_storage("samples", task.samples, task.length * (16 + task.length))
    generator = np.random.default_rng([validation.integer("seed", seed, at_least=0), 0x7A5C])
    sequences = generator.integers(0, task.symbols, (task.samples, task.length), dtype=np.int32)
    distinct = generator.permutation(np.unique(sequences, axis=0))
    n = int(TRAIN_SHARE * len(distinct))
    if n < 1 or n == len(distinct):
        raise InvalidInput("samples", task.samples, "must give at least two distinct sequences")
    train, held_out = distinct[:n], distinct[n:]
    return Split(train, count(train), held_out, count(held_out))


def parse(
    text: str, symbols: int, length: int, field: str = "sequence"
) -> Int[np.ndarray, " length"]:
    """Convert a typed sequence such as BBCCDDBBBB to numbers; `InvalidInput` if that fails.

    Examples
    --------
    >>> dp.histogram.parse("ABBA", symbols=3, length=4)
    array([0, 1, 1, 0], dtype=int32)
    """
    letters = string.ascii_uppercase[:symbols]
    if not isinstance(text, str) or len(text) != length or not set(text) <= set(letters):
        rule = f"must be {length} letters from {letters[0]} to {letters[-1]}"
        raise InvalidInput(field, text, rule)
    return np.asarray([letters.index(letter) for letter in text], np.int32)
