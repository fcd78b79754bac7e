"""Points on a Dask cluster: an existing one by its address, or one started for the purpose.

Whoever can talk to a scheduler can run programs as its owner. One that is started here therefore
talks only to those who have its keys, which are made for the purpose and never written down (TLS).

A task is a run of neighbouring points, so that a worker uses again what it has compiled; it
hands back what it has after a few seconds and the rest is sent out anew, so that finished
points reach the journal soon. When a worker dies the scheduler gives its tasks to others, and of a
cluster that is started here a new one takes its place.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import socket
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple
from importlib.util import find_spec
from typing import Any

from dotphase.errors import InvalidInput
from dotphase.runtime import interrupt
from dotphase.runtime.shared_setting import SharedSetting
from dotphase.runtime.subprocesses import ENVIRONMENT
from dotphase.storage.journal import PointResult
from dotphase.study.local import Step, chunks_of
from dotphase.study.spec import Study
from dotphase.study.tasks import compute_point, reason_of

#: Seconds after which a task hands back what it has.
BUDGET = 5.0
#: Seconds to wait for a scheduler to answer, and between two looks whether it still does.
CONNECT, LOOK = 4, 0.5
#: Seconds without any worker after which that is told.
NOBODY = 30.0
#: Seconds to wait for a result that is said to be there.
FETCH = 5
#: Reason of a point that workers die of.
DEADLY = "several workers died computing it"
#: What addresses look like, and the port that Dask takes where none is said.
ADDRESS = r"((tcp|tls|ws|wss|ucx)://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(:(?P<port>\d{1,5}))?"
PORT = 8786
#: Beginnings of the names of what Dask logs.
LOGGERS = ("distributed", "tornado", "asyncio")
#: Tasks in flight for every thread of the cluster.
AHEAD = 2


@contextmanager
def connected(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A client of the cluster at an address, or of one of so many workers that is started here."""
    needed = ("distributed",) if scheduler is not None else ("distributed", "cryptography")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        rule = f"needs {' and '.join(missing)}: pip install 'dotphase[cluster]'"
        raise InvalidInput("on", "dask", rule)
    with _silent_loggers.hold(), ExitStack() as stack:
        yield stack.enter_context(_closing(_start(stack, workers, scheduler)))


def _start(stack: ExitStack, workers: int, scheduler: str | None) -> Any:
    from distributed import Client, LocalCluster, Security

    if scheduler is None:
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=Security.temporary(),
                # Dask's pages cannot be left out, only be for this machine, wherever there is room.
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.CRITICAL,
                env={name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()},
            )
        )
        return Client(cluster, set_as_default=False)
    found = re.fullmatch(ADDRESS, scheduler)
    if found is None:
        rule = "must be the address of a Dask scheduler that answers, as tls://host:port"
        raise InvalidInput("scheduler", scheduler, rule)
    if not scheduler.startswith(("tls://", "wss://")):
        warnings.warn(
            f"{scheduler} is not encrypted: whoever reaches that scheduler can run programs on it "
            "as its owner",
            stacklevel=2,
        )
    try:
        # A client that nobody answers is left half made: first see whether somebody is there.
        place = found["host"].strip("[]"), int(found["port"] or PORT)
        socket.create_connection(place, timeout=CONNECT).close()
        return Client(scheduler, timeout=CONNECT, set_as_default=False)
    except Exception as error:  # whatever Dask makes of an address that is none
        rule = f"is not the address of a Dask scheduler that answers ({reason_of(error)})"
        raise InvalidInput("scheduler", scheduler, rule) from None


@contextmanager
def _closing(client: Any) -> Iterator[Any]:
    """Close the client at the end, without waiting for a scheduler that is gone."""
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=CONNECT if client.status == "running" else 0)


def _silence_loggers() -> Callable[[], None]:
    """Hide Dask's internal messages, which concern its own processes."""
    import distributed  # noqa: F401 (creates the loggers)

    names = [name for name in logging.root.manager.loggerDict if name.startswith(LOGGERS)]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    def restore() -> None:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

    return restore


_silent_loggers = SharedSetting(_silence_loggers)


def _set_environment() -> Callable[[], None]:
    """Set the environment variables of workers, unless the owner of the cluster has set them."""
    added = ENVIRONMENT.keys() - os.environ.keys()
    os.environ.update({name: ENVIRONMENT[name] for name in added})

    def restore() -> None:
        for name in added:
            os.environ.pop(name, None)

    return restore


_worker_environment = SharedSetting(_set_environment)


def on_dask(client: Any, study: Study, todo: Sequence[int]) -> Generator[Step, None, None]:
    """Compute points on a Dask cluster; the next tasks are sent out when this is resumed."""
    kept = study.size - len(todo)
    try:
        for step in _compute(client, study, todo):
            yield step
            kept += sum(outcome.values is not None for outcome in step.finished)
    except Exception:
        if client.status == "running":
            raise
        rule = f"was lost; {kept} points are kept"
        raise InvalidInput("scheduler", client.scheduler.address, rule) from None


def _compute(client: Any, study: Study, todo: Sequence[int]) -> Generator[Step, None, None]:
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
            for future in _arrivals(client, arrived):
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


def _arrivals(client: Any, arrived: queue.SimpleQueue[Any]) -> list[Any]:
    """Tasks that have come back, at least one."""
    found: list[Any] = []
    alone_since, told = None, False
    missed: set[Any] = set()
    while not found:
        interrupt.check()
        missed = _replace_dead(client.cluster, missed)
        alone_since = (alone_since or time.monotonic()) if not client.nthreads() else None
        if alone_since and not told and time.monotonic() - alone_since > NOBODY:
            told = True
            warnings.warn(
                f"{client.scheduler.address} has no workers; the study goes on when it has some",
                stacklevel=2,
            )
        with suppress(queue.Empty):
            found.append(arrived.get(timeout=LOOK))
            while True:
                found.append(arrived.get_nowait())
        if client.status != "running":
            raise ConnectionError("the scheduler was lost")
    return found


def _replace_dead(cluster: Any, missed: set[Any]) -> set[Any]:
    """Start workers anew of a cluster that is ours; those that are to be looked at once more.

    What watches over a worker starts another where it dies, but not where it dies while it is being
    started; without workers the study would wait for ever.
    """
    if cluster is None:
        return set()
    size = len(cluster.worker_spec)
    gone = {name for name, nanny in tuple(cluster.workers.items()) if _has_given_up(nanny)}
    if gone & missed or len(cluster.workers) < size:
        for name in gone & missed:
            cluster.worker_spec.pop(name, None)
        cluster.scale(size)
    return gone - missed


def _has_given_up(nanny: Any) -> bool:
    """Whether a worker is gone and nobody is starting it."""
    alive = {"init", "starting", "running"}
    watched = nanny.process
    return nanny.status.name not in alive or watched is None or watched.status.name not in alive


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
    started = time.monotonic()
    finished: list[tuple[Any, ...]] = []
    with _worker_environment.hold():
        for question in questions:
            finished.append(astuple(compute_point(**question)))
            if time.monotonic() - started > BUDGET:
                break
    return finished
