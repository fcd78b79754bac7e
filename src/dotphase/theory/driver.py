"""Running what asks queries: alone, spread over threads, in vmapped lanes, or step by step.

Everything that solves is a generator: it yields queries, is sent their answers and returns a
result (`Steps`). It never knows how its queries are answered, and here alone it is driven.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from dotphase.config import validation
from dotphase.runtime import interrupt, threads
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.expectations import A, Query

T = TypeVar("T")

#: Computations side by side on an accelerator; blocks of points in one call there, and the most
#: of them times their points inside.
LANES, WIDTH, INSIDE = 16, 32, 2048

#: A computation in steps: a generator of queries that returns a result.
Steps = Generator[Query[Any], Any, T]


def ask(query: Query[A]) -> Steps[A]:
    """The answer to one query, to be used with ``yield from``."""
    answer: A = yield query
    return answer


class Stepper(Generic[T]):
    """A computation that its owner runs one query at a time, and may leave at any of them.

    Attributes
    ----------
    result : what it returned; there is none before it is done
    """

    result: T

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self._query: Query[Any] | None = None
        self._begun = False

    @property
    def query(self) -> Query[Any] | None:
        """What it wants to know next; None once it has ended. It begins when this is first read."""
        if not self._begun:
            self.send(None)
        return self._query

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.query is None

    def send(self, answer: Any) -> None:
        """Go on with the answer to `query`."""
        self._begun = True
        try:
            self._query = self._steps.send(answer)
        except StopIteration as end:
            self._query, self.result = None, end.value

    def step(self) -> bool:
        """Answer one query; whether there are more."""
        interrupt.check()
        query = self.query
        if query is not None:
            self.send(query.alone())
        return not self.done

    def close(self) -> None:
        """End it without a result."""
        self._steps.close()


def run(
    work: Sequence[Steps[T]],
    *,
    lanes: int | None = None,
    progress: Callable[[T], None] | None = None,
) -> list[T]:
    """Run computations to their ends: side by side in vmapped lanes, or spread over threads."""
    if lanes is None:
        lanes = 1 if jax.default_backend() == "cpu" else LANES
    lanes = validation.integer("lanes", lanes, at_least=1, at_most=2**12)
    report = progress or (lambda result: None)
    if lanes > 1:
        return _run_in_lanes(work, lanes, report)
    workers = min(len(work), threads.CORES)
    if workers <= 1:
        results = []
        for steps in work:
            results.append(run_alone(steps))
            report(results[-1])
        return results
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(in_double_precision(run_alone), steps, stop) for steps in work]
        try:
            for future in futures:
                report(future.result())
        except BaseException:
            # Interrupted or failed: threads cannot be killed, so they are asked to stop.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def run_alone(steps: Steps[T], stop: threading.Event | None = None) -> T:
    """Run one computation to its end, or until `stop` is set."""
    # Numbers that overflow are seen by those who judge them.
    with np.errstate(all="ignore"):
        stepper = Stepper(steps)
        while stepper.step():
            if stop is not None and stop.is_set():
                stepper.close()
                raise KeyboardInterrupt
    return stepper.result


def _run_in_lanes(work: Sequence[Steps[T]], lanes: int, report: Callable[[T], None]) -> list[T]:
    """Keep `lanes` computations in flight; queries of one group share a vmapped call."""
    cpu = jax.default_backend() == "cpu"
    results: dict[int, T] = {}
    waiting = list(enumerate(work))[::-1]
    flying: dict[int, Stepper[T]] = {}

    def land(index: int) -> None:
        if flying[index].done:
            results[index] = flying.pop(index).result
            report(results[index])

    while waiting or flying:
        interrupt.check()
        while waiting and len(flying) < lanes:
            index, steps = waiting.pop()
            flying[index] = Stepper(steps)
            land(index)
        groups: dict[object, dict[int, Query[Any]]] = {}
        for index, stepper in flying.items():
            if stepper.query is not None:
                groups.setdefault(stepper.query.group, {})[index] = stepper.query
        for members in groups.values():
            queries = list(members.values())
            width = lanes if cpu else max(1, min(WIDTH, INSIDE // queries[0].inside))
            for index, answer in zip(members, queries[0].together(queries, width), strict=True):
                flying[index].send(answer)
                land(index)
    return [results[index] for index in range(len(work))]
