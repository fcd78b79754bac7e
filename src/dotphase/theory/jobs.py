"""Running solves: alone, spread over threads, or side by side in vmapped lanes.

A job is a generator that yields queries, is sent answers and returns a result. It never
knows how its queries are evaluated.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

from dotphase._numerics import validate
from dotphase._numerics.precision import in_double_precision
from dotphase.theory.evaluate import Answer, Query, evaluate, evaluate_together

T = TypeVar("T")

Job = Generator[Query, Answer, T]


def run(
    jobs: Sequence[Job[T]],
    *,
    lanes: int | None = None,
    progress: Callable[[T], None] | None = None,
) -> list[T]:
    """Run jobs to their ends: side by side in vmapped lanes, or spread over threads."""
    if lanes is None:
        lanes = 1 if jax.default_backend() == "cpu" else 16
    report = progress or (lambda result: None)
    if lanes > 1:
        return _run_in_lanes(jobs, validate.whole("lanes", lanes, at_least=1), report)
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers <= 1:
        results = []
        for job in jobs:
            results.append(_run_alone(job))
            report(results[-1])
        return results
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(in_double_precision(_run_alone), job, stop) for job in jobs]
        try:
            for future in futures:
                report(future.result())
        except BaseException:
            # Interrupted or failed: threads cannot be killed, so they are asked to stop.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _run_alone(job: Job[T], stop: threading.Event | None = None) -> T:
    try:
        query = next(job)
        while stop is None or not stop.is_set():
            query = job.send(evaluate(query))
    except StopIteration as end:
        result: T = end.value
        return result
    job.close()
    raise KeyboardInterrupt


def _run_in_lanes(jobs: Sequence[Job[T]], lanes: int, report: Callable[[T], None]) -> list[T]:
    """Keep `lanes` jobs in flight; queries of one structure share a vmapped call."""
    results: dict[int, T] = {}
    waiting = list(range(len(jobs)))[::-1]
    asked: dict[int, Query] = {}

    def advance(index: int, answer: Answer | None) -> None:
        try:
            job = jobs[index]
            asked[index] = next(job) if answer is None else job.send(answer)
        except StopIteration as end:
            asked.pop(index, None)
            results[index] = end.value
            report(end.value)

    while waiting or asked:
        while waiting and len(asked) < lanes:
            advance(waiting.pop(), None)
        groups: dict[object, list[int]] = {}
        for index, query in asked.items():
            groups.setdefault(query.group, []).append(index)
        for members in groups.values():
            queries = [asked[index] for index in members]
            # A full set of lanes whatever their number, so that nothing is compiled again.
            filled = queries + [queries[0]] * (lanes - len(queries))
            for index, answer in zip(members, evaluate_together(filled), strict=False):
                advance(index, answer)
    return [results[index] for index in range(len(jobs))]
