"""Many runs in one compiled call: how many, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from dotphase.config import validation
from dotphase.finite_d.datasets import BLOCK
from dotphase.model import Model
from dotphase.runtime import memory_limit

T = TypeVar("T")

#: Numbers of sentences that data sets have, from one power of two to the next, and the smallest
#: step from one such number to another.
SIZES, LEAST_STEP = 8, 128
#: On an accelerator: share of the free memory that a batch may take, and most runs in it.
SHARE, MOST = 0.5, 128
#: On a CPU: bytes that a batch may take.
CACHE = 2**25


def on_cpu() -> bool:
    """Whether JAX computes on a CPU."""
    return jax.devices()[0].platform == "cpu"


def padded(n: int) -> int:
    """Sentences of the data set that the n asked for are the first of.

    Compiled code is for arrays of one shape; with few of them another alpha compiles nothing again.
    What is not asked for costs at most an eighth of the time (of small data sets, 127 sentences).
    """
    step = max(2 ** (n.bit_length() - 1) // SIZES, LEAST_STEP)
    return -(-n // step) * step


def bytes_of_run(model: Model, n: int, d: int, dtype: np.dtype) -> int:
    """Memory that a run needs, most of it for its tokens."""
    return memory_limit.COPIES * max(padded(n), BLOCK) * model.length * d * dtype.itemsize


def check_run(model: Model, n: int, d: int) -> None:
    """Refuse a data set of such a size if it does not fit into memory."""
    each = bytes_of_run(model, n, d, np.dtype("float64"))
    memory_limit.check_batch(1, each, memory_limit.available_bytes(), d)


def choose_batch(asked: int | None, each: int, count: int, d: int, *, crowd: int = 1) -> int:
    """How many of `count` runs of `each` bytes to train at once, or what the user asks for.

    On a CPU at most `crowd`: there runs compete for the same memory bus, and all wait for the
    slowest, which is worth it for small data sets only. An error names d.
    """
    count, room = max(count, 1), memory_limit.available_bytes()
    if asked is not None:
        asked = min(validation.integer("batch", asked, at_least=1), count)
        memory_limit.check_batch(asked, each, room, d)
        return asked
    memory_limit.check_batch(1, each, room, d)
    if on_cpu():
        return int(np.clip(CACHE // each, 1, min(crowd, count)))
    return int(np.clip(SHARE * room // each, 1, min(MOST, count)))


def in_batches(items: Sequence[T], size: int) -> Iterator[tuple[Sequence[T], list[T]]]:
    """Parts of `items`, each beside itself filled up with copies of its last item, so that all
    have one size and nothing is compiled again."""
    for first in range(0, len(items), size):
        some = items[first : first + size]
        yield some, [*some, *[some[-1]] * (size - len(some))]


def over_runs(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap` over the runs of a batch; a batch of one is compiled as a single run, which
    is quicker to compile and to execute."""

    def call(*batched: Any) -> Any:
        if jax.tree.leaves(batched)[0].shape[0] > 1:
            return jax.vmap(function)(*batched)
        alone = function(*jax.tree.map(lambda leaf: leaf[0], batched))
        return jax.tree.map(lambda leaf: leaf[None], alone)

    return call
