"""Blocks of points computed on all cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import jax

from dotphase.runtime.precision import in_double_precision

T = TypeVar("T")


def _count_cores() -> int:
    """Return the number of cores to use: NPROC, which XLA reads as well, or all."""
    limit = os.environ.get("NPROC", "")
    return (limit.isdigit() and int(limit)) or os.cpu_count() or 1


CORES = _count_cores()


def map_blocks(compute: Callable[[int], T], count: int) -> list[T]:
    """Compute one result per block, in threads and in the calling thread.

    A block is too small for XLA to use several cores. Each thread takes the next block when it is
    free. After an exception no thread starts another block.
    """
    if count < 2 or jax.default_backend() != "cpu":
        return [compute(index) for index in range(count)]
    remaining, results = iter(range(count)), dict[int, T]()

    def work() -> None:
        try:
            for index in remaining:
                results[index] = compute(index)
        except BaseException:
            deque(remaining, maxlen=0)  # exhaust the iterator: no thread starts another block
            raise

    helpers = [thread_pool().submit(in_double_precision(work)) for _ in range(CORES - 1)]
    work()
    for helper in helpers:
        # A helper whose thread was busy until now has no blocks left to compute.
        if not helper.cancel():
            helper.result()
    return [results[index] for index in range(count)]


@lru_cache(maxsize=1)
def thread_pool() -> ThreadPoolExecutor:
    """Return the threads of this process, one per core, started at the first call."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="dotphase-blocks")
