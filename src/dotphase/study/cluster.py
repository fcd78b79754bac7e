"""Compute points on a Dask cluster: an existing one, or one started on this machine.

Everybody who can connect to a scheduler can run programs as its owner. A cluster that is started on
this machine therefore uses TLS, with keys that are created for it and never stored.

A task is a chunk of neighboring points, so that a worker reuses its compiled functions. After a few
seconds it returns its finished points, and the others are sent again. Finished points therefore
reach the journal soon. The tasks of a dead worker are assigned to other workers; in a cluster on
this machine, the worker is replaced.
"""

import logging
import multiprocessing
import os
import queue
import re
import socket
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple
from functools import partial
from importlib.util import find_spec
from typing import Any

import dotphase
from dotphase.errors import InvalidInput, describe_error
from dotphase.runtime import interrupt
from dotphase.runtime.processes import ENVIRONMENT
from dotphase.runtime.shared_setting import SharedSetting
from dotphase.storage.journal import PointResult
from dotphase.study.local import Step, split_into_chunks
from dotphase.study.spec import Study
from dotphase.study.tasks import compute_point

#: Seconds after which a task starts no further point.
TASK_SECONDS = 5.0
#: Seconds to wait for a connection to a scheduler.
CONNECT_SECONDS = 4
#: Seconds between two checks of the scheduler and its workers.
POLL_SECONDS = 0.5
#: Seconds without workers before a warning.
WARN_SECONDS = 30.0
#: Seconds to wait for the result of a finished task.
FETCH_SECONDS = 5
#: Reason of points whose workers die.
DEADLY = "several workers died computing it"
#: Rule for a cluster whose workers end at once.
NOT_STARTED = "its workers do not start; a script needs the line: if __name__ == '__main__':"
#: Pattern of addresses, and Dask's default port.
ADDRESS = r"((tcp|tls|ws|wss|ucx)://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(:(?P<port>\d{1,5}))?"
PORT = 8786
#: Prefixes of the names of Dask's loggers.
LOGGERS = ("distributed", "tornado", "asyncio")
#: Number of submitted tasks per thread of the cluster.
TASKS_PER_THREAD = 2


def exit_in_unguarded_worker() -> None:
    """End a worker that imports a script without guard, and would start workers of its own."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # its parent raises the error


@contextmanager
def connect(workers: int, scheduler: str | None) -> Iterator[Any]:
    """Connect to the scheduler at an address, or start a cluster with a number of workers."""
    needed = ("distributed",) if scheduler is not None else ("distributed", "cryptography")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        rule = f"needs {' and '.join(missing)}: pip install 'dotphase[cluster]'"
        raise InvalidInput("engine", "dask", rule)
    with _silent_loggers.hold(), ExitStack() as stack:
        yield stack.enter_context(_closing(_make_client(stack, workers, scheduler)))


def _make_client(stack: ExitStack, workers: int, scheduler: str | None) -> Any:
    from distributed import Client, LocalCluster, Security

    if scheduler is None:
        try:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=Security.temporary(),
                # The dashboard cannot be disabled; it gets a free port of this machine only.
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.CRITICAL,
                env={name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()},
            )
        except RuntimeError:
            raise InvalidInput("engine", "dask", NOT_STARTED) from None
        return Client(stack.enter_context(cluster), set_as_default=False)
    address = re.fullmatch(ADDRESS, scheduler)
    if address is None:
        rule = "must be the address of a running Dask scheduler, such as tls://host:port"
        raise InvalidInput("scheduler", scheduler, rule)
    if not scheduler.startswith(("tls://", "wss://")):
        warnings.warn(
            f"{scheduler} is not encrypted: everybody who can connect to that scheduler can run "
            "programs as its owner",
            stacklevel=2,
        )
    try:
        # A client without a scheduler is never cleaned up: test the connection first.
        host = address["host"].strip("[]"), int(address["port"] or PORT)
        socket.create_connection(host, timeout=CONNECT_SECONDS).close()
        return Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # Dask raises many types for a wrong address
        rule = f"is not the address of a running Dask scheduler ({describe_error(error)})"
        raise InvalidInput("scheduler", scheduler, rule) from None


@contextmanager
def _closing(client: Any) -> Iterator[Any]:
    """Close the client at the end, without waiting for a lost scheduler."""
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=CONNECT_SECONDS if client.status == "running" else 1)


def _silence_loggers() -> Callable[[], None]:
    """Hide Dask's internal messages, which concern its own processes."""
    import distributed  # noqa: F401 (creates the loggers)

    names = [name for name in logging.root.manager.loggerDict if name.startswith(LOGGERS)]
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)

    def restore() -> None:
        for logger, level in levels.items():
            logger.setLevel(level)

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


def run_on_dask(
    client: Any, study: Study, points: Sequence[int], max_seconds: float = 0.0
) -> Generator[Step, None, None]:
    """Compute points on a Dask cluster; each resumption submits the next tasks."""
    n_stored, address = study.size - len(points), client.scheduler.address
    try:
        for step in _compute(client, study, points, max_seconds):
            yield step
            n_stored += sum(point.values is not None for point in step.finished)
    except Exception:
        if client.status == "running":
            raise
        rule = f"was lost; {n_stored} points are kept"
        raise InvalidInput("scheduler", address, rule) from None


def _compute(
    client: Any, study: Study, points: Sequence[int], max_seconds: float
) -> Generator[Step, None, None]:
    done_tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    chunks = split_into_chunks(points, _threads(client))
    # The scheduler counts a dead worker against all its tasks, and gives up harmless ones too.
    # Their points are tried once more, one at a time, to find the point that kills workers.
    suspects: deque[int] = deque()
    submitted: dict[Any, list[int]] = {}
    finished: list[PointResult] = []
    try:
        while True:
            n_free = TASKS_PER_THREAD * _threads(client) - len(submitted)
            started = [list(chunks.popleft()) for _ in range(min(n_free, len(chunks)))]
            is_alone = not started and not submitted and bool(suspects)
            if is_alone:
                started = [[suspects.popleft()]]
            yield Step(tuple(finished), tuple(index for chunk in started for index in chunk))
            finished.clear()
            for chunk in started:
                arguments = [study.arguments(index) for index in chunk]
                future = client.submit(
                    compute_chunk, arguments, max_seconds, dotphase.__version__, pure=False
                )
                submitted[future] = chunk
                future.add_done_callback(done_tasks.put)
            if not submitted:
                return
            for future in _wait_for_tasks(client, done_tasks):
                chunk = submitted.pop(future)
                results, remaining = _fetch(future, chunk)
                future.release()
                if results is None and is_alone:
                    results = [PointResult(chunk[0], None, DEADLY, 0.0)]
                elif results is None:
                    suspects.extend(chunk)
                    continue
                finished += results
                if remaining:
                    chunks.appendleft(deque(remaining))
    finally:
        with suppress(Exception):
            client.cancel(list(submitted))


def _threads(client: Any) -> int:
    return max(1, sum(client.nthreads().values()))


def _wait_for_tasks(client: Any, done_tasks: queue.SimpleQueue[Any]) -> list[Any]:
    """Wait until a task is done; return all that are."""
    futures: list[Any] = []
    idle_since, warned = None, False
    dead: set[Any] = set()
    while not futures:
        dead = _replace_dead_workers(client.cluster, dead)
        idle_since = (idle_since or time.monotonic()) if not client.nthreads() else None
        if idle_since and not warned and time.monotonic() - idle_since > WARN_SECONDS:
            warned = True
            warnings.warn(
                f"{client.scheduler.address} has no workers; the study waits for them", stacklevel=2
            )
        futures = _drain(done_tasks)
        if client.status != "running":
            raise ConnectionError("the scheduler was lost")
    return futures


def _drain(done_tasks: queue.SimpleQueue[Any]) -> list[Any]:
    """Wait for a task and return all that are done; empty after `POLL_SECONDS`."""
    interrupt.check()
    futures: list[Any] = []
    with suppress(queue.Empty):
        futures.append(done_tasks.get(timeout=POLL_SECONDS))
        while True:
            futures.append(done_tasks.get_nowait())
    return futures


def _replace_dead_workers(cluster: Any, suspected: set[Any]) -> set[Any]:
    """Replace workers that were dead in two checks; return the newly dead ones.

    Dask's nanny restarts a worker that dies, except while the worker is starting. Without workers
    the study would never end. Clusters at an address (None) are managed by their owner.
    """
    if cluster is None:
        return set()
    size = len(cluster.worker_spec)
    dead = {name for name, nanny in tuple(cluster.workers.items()) if _is_dead(nanny)}
    if dead & suspected or len(cluster.workers) < size:
        for name in dead & suspected:
            cluster.worker_spec.pop(name, None)
        cluster.scale(size)
    return dead - suspected


def _is_dead(nanny: Any) -> bool:
    """Return True if a worker has ended and its nanny does not restart it."""
    alive, process = {"init", "starting", "running"}, nanny.process
    return nanny.status.name not in alive or process is None or process.status.name not in alive


def _fetch(future: Any, chunk: list[int]) -> tuple[list[PointResult] | None, list[int]]:
    """Return the results of a task, None if it killed workers, and the points to send again."""
    from distributed import KilledWorker

    try:
        if future.status == "finished":
            results = [PointResult(*parts) for parts in future.result(timeout=FETCH_SECONDS)]
            return results, chunk[len(results) :]
        if future.status == "error":
            raise future.exception()
    except KilledWorker:
        return None, []
    except (TimeoutError, CancelledError):
        pass
    except Exception as error:
        # For example, a worker without the module of the task.
        return [PointResult(index, None, describe_error(error), 0.0) for index in chunk], []
    # The worker died before the result was fetched, or the task was dropped.
    return [], chunk


def compute_chunk(
    points: list[dict[str, Any]], max_seconds: float, version: str
) -> list[tuple[Any, ...]]:
    """Compute points, from arguments of `compute_point`; start no other after `TASK_SECONDS`.

    A point that takes longer than `max_seconds` fails (0 for no limit). Workers of another version
    of dotphase compute nothing.
    """
    if version != dotphase.__version__:
        raise InvalidInput("worker", f"dotphase {dotphase.__version__}", f"must be {version}")
    started = time.monotonic()
    finished: list[tuple[Any, ...]] = []
    with _worker_environment.hold():
        for arguments in points:
            finished.append(astuple(_compute_within(max_seconds, arguments)))
            if time.monotonic() - started > TASK_SECONDS:
                break
    return finished


def _compute_within(max_seconds: float, arguments: dict[str, Any]) -> PointResult:
    """Compute a point; one that takes too long fails, and its thread ends with the worker."""
    compute = partial(compute_point, **arguments)
    if not max_seconds:
        return compute()
    # Imports JAX, which the process that manages a study does without.
    from dotphase.runtime.threads import call_within

    try:
        return call_within(max_seconds, object(), compute)
    except TimeoutError:
        reason = f"took longer than {max_seconds:g} s"
        return PointResult(arguments["index"], None, reason, max_seconds)
