"""Processes that compute for the page: each is told one job and says how far it is.

What is cancelled is killed: it is gone at once, and its memory with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: Seconds after which a job is given up.
LIMIT = 600.0

#: The program that they run.
WORKER = [sys.executable, "-m", "dotphase.explorer.worker"]

Said = dict[str, Any]


class Children:
    """All processes of one server."""

    def __init__(self) -> None:
        self._alive: dict[subprocess.Popen, str] = {}
        self._lock = threading.Lock()

    def start(
        self, job: Said, note: Callable[[Said], None], end: Callable[[str], None]
    ) -> subprocess.Popen:
        """Start a process for a job, see `dotphase.explorer.worker`.

        Parameters
        ----------
        job : what to do: a task by name, and what it needs
        note : called with everything that the process says
        end : called once after that, with what went wrong on the way, or nothing
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
            self._alive[process] = job["task"]
        following = (process, job, note, end)
        threading.Thread(target=self._follow, args=following, daemon=True).start()
        return process

    def running(self, task: str) -> int:
        """How many processes work on a task."""
        with self._lock:
            return sum(name == task for name in self._alive.values())

    def kill(self, process: subprocess.Popen) -> None:
        """End a process, if it has not ended."""
        with self._lock:
            self._alive.pop(process, None)
        if process.poll() is None:
            process.kill()

    def close(self) -> None:
        """End all processes."""
        for process in list(self._alive):
            self.kill(process)

    def _follow(
        self,
        process: subprocess.Popen,
        job: Said,
        note: Callable[[Said], None],
        end: Callable[[str], None],
    ) -> None:
        """Read what a process says until it ends."""
        assert process.stdin is not None and process.stdout is not None
        limit = threading.Timer(LIMIT, process.kill)
        limit.daemon = True
        limit.start()
        wrong = ""
        with process:
            try:
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    note(json.loads(line))
            except (OSError, ValueError) as error:
                wrong = f"{type(error).__name__}: {error}"
            self.kill(process)
            with suppress(OSError):
                process.stdin.close()  # what it did not live to read
        limit.cancel()
        end(wrong)
