"""Processes that compute for the page: each has one job and reports its progress.

A canceled process is killed: it ends at once, and its memory is free.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: Longest duration of a job, in seconds.
MAX_SECONDS = 600.0
#: The program that the processes run.
WORKER = [sys.executable, "-m", "dotphase.explorer.worker"]

#: A job for a process, or one of its reports.
Message = dict[str, Any]


class JobProcesses:
    """All processes of one server."""

    def __init__(self) -> None:
        self._tasks: dict[subprocess.Popen, str] = {}
        self._lock = threading.Lock()

    def start(
        self, job: Message, on_message: Callable[[Message], None], on_exit: Callable[[str], None]
    ) -> subprocess.Popen:
        """Start a process for a job, see `dotphase.explorer.worker`.

        Parameters
        ----------
        job : name of the task, and its arguments
        on_message : receives each report of the process
        on_exit : called once at the end, with an error or an empty string
        """
        process = subprocess.Popen(
            WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C in the terminal is for the server, which ends its processes itself.
            start_new_session=True,
        )
        with self._lock:
            self._tasks[process] = job["task"]
        arguments = (process, job, on_message, on_exit)
        threading.Thread(target=self._listen, args=arguments, daemon=True).start()
        return process

    def count(self, task: str) -> int:
        """Number of processes that run a task."""
        with self._lock:
            return sum(name == task for name in self._tasks.values())

    def kill(self, process: subprocess.Popen) -> None:
        """End a process, if it has not ended."""
        with self._lock:
            self._tasks.pop(process, None)
        if process.poll() is None:
            process.kill()

    def close(self) -> None:
        """End all processes."""
        for process in list(self._tasks):
            self.kill(process)

    def _listen(
        self,
        process: subprocess.Popen,
        job: Message,
        on_message: Callable[[Message], None],
        on_exit: Callable[[str], None],
    ) -> None:
        """Read the reports of a process until it ends."""
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(MAX_SECONDS, process.kill)
        timer.daemon = True
        timer.start()
        error = ""
        with process:
            try:
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    on_message(json.loads(line))
            except (OSError, ValueError) as caught:
                error = f"{type(caught).__name__}: {caught}"
            self.kill(process)
            with suppress(OSError):
                # A killed process may have left the job in the pipe unread.
                process.stdin.close()
        timer.cancel()
        on_exit(error)
