"""Worker processes: a program sends functions and arguments, they send back reports and results.

They are not forked, since JAX does not survive a fork. They are not started by `multiprocessing` or
`concurrent.futures` either: both run the user's script again in every worker, unless it is guarded
by ``if __name__ == "__main__"``.

Calls, reports and results are pickled and travel on a socket of their own, between a program and
its own workers only, never from disk. A user's function may therefore print whatever it likes.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Literal, NamedTuple

import dotphase
from dotphase.errors import InvalidInput, describe_error
from dotphase.runtime import interrupt

#: Arguments of Python in a worker. With ``-P`` the files of the current folder shadow no modules.
COMMAND = ("-P", "-m", "dotphase.runtime.processes")
#: One thread per worker: several workers fill the cores better, and sums that are split among
#: threads would depend on their number. No worker reserves all memory of a GPU.
ENVIRONMENT = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
#: Number of workers that die in a row before they are ready, after which no more are started.
MAX_FAILED_STARTS = 3
#: Seconds between two checks for an interruption.
POLL_SECONDS = 0.2
#: Seconds in which a process that closed its socket may end by itself.
EXIT_SECONDS = 5.0
#: Largest size of the messages of a worker on stderr, in bytes; they are emptied above it.
MAX_STDERR = 2**20

Kind = Literal["ready", "report", "result", "error", "late", "death"]


class Message(NamedTuple):
    """Message of a worker."""

    worker: Worker  #: the sender
    #: "ready" once after the start; "report" of a call that continues; its "result", or the "error"
    #: that it raised; "death" of the process, or "late" if it was killed at a deadline
    kind: Kind
    value: Any  #: report, result, or a description of the error or of the end of the process


class Worker:
    """A process that computes one call at a time; the user's environment variables come first."""

    def __init__(self, environment: dict[str, str] = ENVIRONMENT) -> None:
        self.label: Any = None  #: the caller's name of the present call; None in an idle worker
        self.ready = False  #: True once the process can compute
        self._deadline, self._max_seconds = float("inf"), 0.0
        self._stderr = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed by close)
        self._connection, end = Pipe()
        package = Path(dotphase.__file__).parent.parent
        path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
        with end:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND, str(end.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                env=environment | os.environ | {"PYTHONPATH": path},
                pass_fds=[end.fileno()],
                # Ctrl-C in the terminal interrupts the parent process, which ends its workers.
                start_new_session=True,
            )
        self._send([os.path.abspath(folder) for folder in sys.path])

    def call(
        self, label: Any, function: Callable[..., Any], *arguments: Any, max_seconds: float = 0.0
    ) -> None:
        """Compute ``function(*arguments, report)``; each call of ``report`` sends its argument.

        `label` names the call and is not None. The process is killed after `max_seconds`, if any.
        """
        self.label = label
        if max_seconds:
            self._max_seconds, self._deadline = max_seconds, time.monotonic() + max_seconds
        self._send((function, arguments))

    def _send(self, value: Any) -> None:
        # A process that has died is reported when its messages are read.
        with suppress(ConnectionError):
            self._connection.send_bytes(pickle.dumps(value))

    def kill(self) -> None:
        """Kill the process; its death is reported when its messages are read."""
        self.process.kill()

    @property
    def is_late(self) -> bool:
        """True if the present call takes too long."""
        return time.monotonic() > self._deadline

    def close(self, seconds: float = 0.0) -> str:
        """End the process, if it does not end within some seconds; return why it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()
        code = self.process.wait()
        self._connection.close()
        with self._stderr:
            self._stderr.seek(0)
            errors = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}, {errors[-1][:300]}" if errors else f"exit code {code}"


def receive(workers: Sequence[Worker], timeout: float) -> list[Message]:
    """Wait for messages; one per worker that has sent some, none after `timeout` seconds."""
    ready = wait([worker._connection for worker in workers], timeout)
    messages = [_read(worker) for worker in workers if worker._connection in ready]
    for worker in workers:
        if worker.is_late:
            worker.kill()
    return messages


def _read(worker: Worker) -> Message:
    """Read a message, which has begun to arrive."""
    kind: Kind
    try:
        content = worker._connection.recv_bytes()
    except (EOFError, OSError):
        reason = worker.close(EXIT_SECONDS)
        if worker.is_late:
            return Message(worker, "late", f"took longer than {worker._max_seconds:g} s")
        return Message(worker, "death", reason)
    try:
        kind, value = pickle.loads(content)
    except Exception as error:  # an object that this process cannot restore may raise anything
        kind, value = "error", describe_error(error)
    if kind == "ready":
        worker.ready = True
    elif kind != "report":
        worker.label, worker._deadline = None, float("inf")
        if worker._stderr.tell() > MAX_STDERR:
            worker._stderr.seek(0)
            worker._stderr.truncate()
    return Message(worker, kind, value)


class Pool:
    """At most `size` workers, started when they are needed, and replaced when they die."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.workers: list[Worker] = []
        self._n_failed_starts = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.close()

    @property
    def n_busy(self) -> int:
        """Number of workers that compute a call."""
        return sum(worker.label is not None for worker in self.workers)

    def grow(self, needed: int) -> None:
        """Start workers until there are as many as `needed`, or `size`."""
        while len(self.workers) < min(needed, self.size):
            self.workers.append(Worker())

    def idle(self) -> list[Worker]:
        """Return the workers that can take a call."""
        return [worker for worker in self.workers if worker.ready and worker.label is None]

    def wait(self) -> list[tuple[Any, Message]]:
        """Wait a while; return the messages but "ready", each with the label of its call.

        `InvalidInput` if workers cannot be started, `KeyboardInterrupt` after an interruption.
        """
        interrupt.check()
        labels = {worker: worker.label for worker in self.workers}
        messages = receive(self.workers, POLL_SECONDS)
        dead = {each.worker: each.value for each in messages if each.kind in ("death", "late")}
        self.workers = [worker for worker in self.workers if worker not in dead]
        for worker, reason in dead.items():
            self._n_failed_starts = 0 if worker.ready else self._n_failed_starts + 1
            if self._n_failed_starts == MAX_FAILED_STARTS:
                raise InvalidInput("workers", self.size, f"cannot be started: {reason}")
        return [(labels[each.worker], each) for each in messages if each.kind != "ready"]


def main() -> None:
    """Compute the calls that arrive on a socket, until the parent process closes it or dies."""
    connection = Connection(int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    # At the end: a module of the user's folder must not shadow one of the standard library.
    sys.path += [folder for folder in connection.recv() if folder not in sys.path]
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, calls), daemon=True).start()
    lock = threading.Lock()

    def send(kind: Kind, value: Any = None) -> None:
        with lock:
            connection.send((kind, value))

    send("ready")
    while True:
        content = calls.get()
        try:
            function, arguments = pickle.loads(content)
            send("result", function(*arguments, partial(send, "report")))
        except BaseException as error:  # also SystemExit, which a user's function may raise
            send("error", describe_error(error))


def _listen(connection: Connection, calls: queue.SimpleQueue[bytes]) -> None:
    with suppress(EOFError, OSError):
        while True:
            calls.put(connection.recv_bytes())
    # The parent process has ended: stop in the middle of a call.
    os._exit(0)


if __name__ == "__main__":
    main()
