"""Points on a Dask cluster: an existing one by its address, or one started for the purpose.

A task is a run of neighbouring points, so that a worker uses again what it has compiled; it
hands back what it has after a few seconds and the rest is sent out anew, so that finished
points reach the journal soon. When a worker dies the scheduler gives its tasks to others.
"""

from __future__ import annotations

import os
import queue
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from typing import Any

from dotphase._numerics import interrupt
from dotphase.errors import InvalidInput
from dotphase.storage.journal import PointResult
from dotphase.sweep.local import Step, chunks_of
from dotphase.sweep.spec import Study
from dotphase.sweep.tasks import compute_point, reason_of
from dotphase.sweep.worker import ENVIRONMENT

#: Seconds after which a task hands back what it has.
BUDGET = 5.0
#: Seconds to wait for a scheduler to answer, and between two looks whether it still does.
CONNECT, LOOK = 5, 0.5
#: Seconds to wait for a result that is said to be there.
FETCH = 5
#: Reason of a point that workers die of.
DEADLY = "several workers died computing it"
#: Tasks in flight for every thread of the cluster.
AHEAD = 2


def on_dask(
    study: Study, todo: Sequence[int], workers: int, scheduler: str | None
) -> Generator[Step, None, None]:
    """Compute points on a Dask cluster.

    That of the address `scheduler`, or one of so many workers that is started. The next tasks are
    sent out when the generator is resumed.
    """
    if find_spec("distributed") is None:
        raise InvalidInput("on", "dask", "needs Dask: pip install 'dotphase[cluster]'")
    with ExitStack() as stack:
        client = _connect(stack, workers, scheduler)
        yield from _compute(client, study, todo, scheduler or "the local cluster")


def _connect(stack: ExitStack, workers: int, scheduler: str | None) -> Any:
    from distributed import Client, LocalCluster

    if scheduler is None:
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
                env={name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()},
            )
        )
        return stack.enter_context(Client(cluster, set_as_default=False))
    try:
        return stack.enter_context(Client(scheduler, timeout=CONNECT, set_as_default=False))
    except (OSError, ValueError) as error:
        rule = f"is not the address of a Dask scheduler that answers ({reason_of(error)})"
        raise InvalidInput("scheduler", scheduler, rule) from None


def _compute(
    client: Any, study: Study, todo: Sequence[int], name: str
) -> Generator[Step, None, None]:
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
    chunks = chunks_of(todo, _threads(client))
    # The scheduler blames every task that a dying worker had, so that whoever was there each
    # time is tried once more with nobody beside it.
    suspects: deque[int] = deque()
    flying: dict[Any, list[int]] = {}
    finished: list[PointResult] = []
    try:
        while True:
            room = AHEAD * _threads(client) - len(flying)
            sent = [list(chunks.popleft()) for _ in range(min(room, len(chunks)))]
            alone = not sent and not flying and bool(suspects)
            if alone:
                sent = [[suspects.popleft()]]
            yield Step(tuple(finished), tuple(place for chunk in sent for place in chunk))
            finished.clear()
            for chunk in sent:
                questions = [study.question(place) for place in chunk]
                future = client.submit(compute_some, questions, pure=False)
                flying[future] = chunk
                future.add_done_callback(arrived.put)
            if not flying:
                return
            for future in _arrivals(client, arrived, name):
                chunk = flying.pop(future)
                outcomes, left = _harvest(future, chunk)
                future.release()
                if outcomes is None and alone:
                    outcomes = [PointResult(chunk[0], None, DEADLY, 0.0)]
                elif outcomes is None:
                    suspects.extend(chunk)
                    continue
                finished += outcomes
                if left:
                    chunks.appendleft(deque(left))
    finally:
        with suppress(Exception):
            client.cancel(list(flying))


def _threads(client: Any) -> int:
    return max(1, sum(client.nthreads().values()))


def _arrivals(client: Any, arrived: queue.SimpleQueue[Any], name: str) -> list[Any]:
    """Tasks that have come back, at least one."""
    found: list[Any] = []
    while not found:
        interrupt.check()
        with suppress(queue.Empty):
            found.append(arrived.get(timeout=LOOK))
            while True:
                found.append(arrived.get_nowait())
        if not found and client.status != "running":
            raise InvalidInput("scheduler", name, "was lost; what was finished is kept")
    return found


def _harvest(future: Any, chunk: list[int]) -> tuple[list[PointResult] | None, list[int]]:
    """Outcomes of a task and the points to send out again; None if workers died of it."""
    from distributed import KilledWorker

    try:
        if future.status == "finished":
            outcomes = [PointResult(*parts) for parts in future.result(timeout=FETCH)]
            return outcomes, chunk[len(outcomes) :]
        if future.status == "error":
            raise future.exception()
    except KilledWorker:
        return None, []
    except (TimeoutError, CancelledError):
        pass
    except Exception as error:
        # Such as a worker that cannot import what it needs.
        return [PointResult(place, None, reason_of(error), 0.0) for place in chunk], []
    # The worker died with the result before it could be fetched, or the task was dropped.
    return [], chunk


def compute_some(questions: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Compute points in turn, the first of them at least, until the time is up."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    began = time.monotonic()
    done: list[tuple[Any, ...]] = []
    for question in questions:
        outcome = compute_point(**question)
        done.append((outcome.index, outcome.values, outcome.reason, outcome.seconds))
        if time.monotonic() - began > BUDGET:
            break
    return done
