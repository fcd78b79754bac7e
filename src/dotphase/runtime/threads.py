"""Blocks of points computed on all cores, and calls with a time limit."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import jax

from dotphase.runtime.precision import fixed_settings

#: Largest number of calls of `call_within` that run at once.
MAX_LIMITED_CALLS = 16

T = TypeVar("T")


def _count_cores() -> int:
    """Return the number of cores to use: NPROC, which XLA reads as well, or all.

    XLA would start more threads than there are cores, until the system refuses.
    """
    limit, cores = os.environ.get("NPROC", "").lstrip("0"), os.cpu_count() or 1
    if not limit.isdecimal():
        return cores
    if len(limit) > len(str(cores)) or int(limit) > cores:
        os.environ["NPROC"] = limit = str(cores)
    return int(limit)


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

    helpers = [thread_pool().submit(work) for _ in range(CORES - 1)]
    work()
    for helper in helpers:
        # A helper whose thread was busy until now has no blocks left to compute.
        if not helper.cancel():
            helper.result()
    return [results[index] for index in range(count)]


@lru_cache(maxsize=1)
def thread_pool() -> ThreadPoolExecutor:
    """Return the threads of this process, one per core, started at the first call."""
    return ThreadPoolExecutor(CORES, "dotphase-blocks", initializer=_fix_settings)


_settings = threading.local()


def _fix_settings() -> None:
    """Compute in double precision for the life of a thread."""
    _settings.context = fixed_settings(x64=True)
    _settings.context.__enter__()


_limited_calls: dict[Hashable, tuple[float, Future[Any]]] = {}
_limited_calls_lock = threading.Lock()


def call_within(seconds: float, key: Hashable, compute: Callable[[], T]) -> T:
    """Call a function in another thread; raise `TimeoutError` if it takes too long.

    A thread cannot be stopped, and goes on after the error. Equal keys share one call, and at most
    `MAX_LIMITED_CALLS` run at once, so that functions that never return occupy few threads.
    """
    with _limited_calls_lock:
        for old in [key for key, (_, call) in _limited_calls.items() if call.done()]:
            del _limited_calls[old]
        if key not in _limited_calls:
            if len(_limited_calls) >= MAX_LIMITED_CALLS:
                raise TimeoutError
            future: Future[T] = Future()
            _limited_calls[key] = time.monotonic(), future
            threading.Thread(target=_fulfill, args=(future, compute), daemon=True).start()
        started, future = _limited_calls[key]
    return future.result(max(0.0, started + seconds - time.monotonic()))


def _fulfill(future: Future[T], compute: Callable[[], T]) -> None:
    try:
        future.set_result(compute())
    except BaseException as error:
        future.set_exception(error)
