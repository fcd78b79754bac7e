"""Blocks of points shared out to the cores."""

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


def _cores() -> int:
    """Cores that may be used: as many as NPROC says, as the compiler takes it, or all."""
    given = os.environ.get("NPROC", "")
    return (given.isdigit() and int(given)) or os.cpu_count() or 1


CORES = _cores()


def map_blocks(work: Callable[[int], T], count: int) -> list[T]:
    """One result per block. Blocks are shared out to threads, one for each core: a block is too
    small for the compiler to use more than one. Who is free takes the next; this thread, too."""
    if count < 2 or jax.default_backend() != "cpu":
        return [work(index) for index in range(count)]
    left, found = iter(range(count)), dict[int, T]()

    def some() -> None:
        try:
            for index in left:
                found[index] = work(index)
        except BaseException:
            deque(left, maxlen=0)  # nobody begins another
            raise

    helpers = [thread_pool().submit(in_double_precision(some)) for _ in range(CORES - 1)]
    some()
    for helper in helpers:
        # One that has not begun by now, because its thread was busy, has nothing left to do.
        if not helper.cancel():
            helper.result()
    return [found[index] for index in range(count)]


@lru_cache(maxsize=1)
def thread_pool() -> ThreadPoolExecutor:
    """One for each core, kept."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="dotphase-blocks")
