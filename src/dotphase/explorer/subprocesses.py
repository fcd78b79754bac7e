"""Processes that compute for the page: each has one job and reports its progress.

A canceled process is killed: it ends at once, and its memory is free.
"""

import threading
from collections.abc import Callable
from typing import Any

from dotphase.explorer.worker import run
from dotphase.runtime.processes import Worker, receive

#: Longest duration of a job, in seconds.
MAX_SECONDS = 600.0
#: Seconds to wait for a message at a time.
POLL_SECONDS = 1.0

#: A job for a process, or one of its reports.
Message = dict[str, Any]


class JobProcesses:
    """All processes of one server."""

    def __init__(self) -> None:
        self._tasks: dict[Worker, str] = {}
        self._lock = threading.Lock()

    def start(
        self, job: Message, on_message: Callable[[Message], None], on_exit: Callable[[str], None]
    ) -> Worker:
        """Start a process for a job of `dotphase.explorer.worker`.

        `on_message` receives each report, and `on_exit` at the end an error or an empty string.
        """
        worker = Worker(environment={})
        with self._lock:
            self._tasks[worker] = job["task"]
        worker.call("job", run, job, max_seconds=MAX_SECONDS)
        arguments = (worker, on_message, on_exit)
        threading.Thread(target=self._listen, args=arguments, daemon=True).start()
        return worker

    def count(self, task: str) -> int:
        """Number of processes that run a task."""
        with self._lock:
            return sum(name == task for name in self._tasks.values())

    def kill(self, worker: Worker) -> None:
        """End a process, if it has not ended."""
        with self._lock:
            self._tasks.pop(worker, None)
        worker.kill()

    def close(self) -> None:
        """End all processes."""
        for worker in list(self._tasks):
            self.kill(worker)

    def _listen(
        self, worker: Worker, on_message: Callable[[Message], None], on_exit: Callable[[str], None]
    ) -> None:
        """Forward the reports of a process until its job ends."""
        error: str | None = None
        while error is None:
            for _, kind, value in receive([worker], POLL_SECONDS):
                if kind == "report":
                    on_message(value)
                elif kind == "death":
                    error = f"its process ended early ({value})"
                elif kind == "late":
                    error = value
                elif kind != "ready":
                    error = value if kind == "error" else ""
                    worker.close()
        with self._lock:
            self._tasks.pop(worker, None)
        on_exit(error)
