"""Run solves, one after the other or side by side on the cores.

A solve is a plain function call. Before each evaluation of the averages it calls
`before_evaluation`, where a program may interrupt it, and where the owner of a thread may hold or
end it with a function of its own (`evaluation_hook`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from dotphase.runtime import interrupt, threads
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress, ProgressEvent, reporter

T = TypeVar("T")

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
_hook: ContextVar[Callable[[], None] | None] = ContextVar("evaluation_hook", default=None)


@contextmanager
def evaluation_hook(hook: Callable[[], None]) -> Iterator[None]:
    """Call `hook` before every evaluation that this thread makes inside the block.

    The hook may wait, to give way to other work, or raise an exception, to end the solve.
    """
    token = _hook.set(hook)
    try:
        yield
    finally:
        _hook.reset(token)


def before_evaluation() -> None:
    """Stop if the program is interrupted; then call the hook of this thread."""
    interrupt.check()
    hook = _hook.get()
    if hook is not None:
        hook()


class OutOfTime(Exception):
    """The time of a solve is over; `evaluator` has the points evaluated so far."""

    def __init__(self, evaluator: Any) -> None:
        super().__init__()
        self.evaluator = evaluator


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit the time of the solves inside the block, unless an outer block limits it."""
    if seconds is None or _deadline.get() is not None:
        yield
        return
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def is_out_of_time() -> bool:
    """Return True if the innermost solve has used its time."""
    deadline = _deadline.get()
    return deadline is not None and time.monotonic() > deadline


def run_quietly(job: Callable[[], T]) -> T:
    """Run a solve without floating-point warnings: it judges overflows itself."""
    with np.errstate(all="ignore"):
        return job()


def run_all(jobs: Sequence[Callable[[], T]], stage: str, progress: Progress = None) -> list[T]:
    """Run solves on the cores and return their results in order.

    Parameters
    ----------
    jobs : sequence of callables
        Functions without arguments.
    stage : str
        Name of the computation in the progress events, one for each finished job.
    progress : callable, optional
        Receives the events in the order of the jobs.
    """
    report = reporter(progress)
    results: list[T] = []

    def finish(result: T) -> None:
        results.append(result)
        report(ProgressEvent(stage, len(results), len(jobs), result))

    workers = min(len(jobs), threads.CORES)
    if workers <= 1:
        for job in jobs:
            finish(run_quietly(job))
        return results
    stop = threading.Event()

    def end_if_stopped() -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    @in_double_precision
    def work(job: Callable[[], T]) -> T:
        with evaluation_hook(end_if_stopped):
            return run_quietly(job)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, job) for job in jobs]
        try:
            for future in futures:
                finish(future.result())
        except BaseException:
            # Threads cannot be killed: they end at their next evaluation.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results
