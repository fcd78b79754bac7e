"""Compute points on this machine: in this process, or in worker processes.

Neighboring points go to the same worker, which reuses its compiled functions. A worker receives
its next point once the previous one is in the journal. A worker that dies loses only the point that
it was computing, and is replaced.
"""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from dotphase.errors import InvalidInput
from dotphase.runtime import interrupt
from dotphase.runtime.subprocesses import start
from dotphase.storage.journal import PointResult
from dotphase.study.spec import Study
from dotphase.study.tasks import compute_point

#: Arguments of Python in a worker.
COMMAND = ("-m", "dotphase.study.worker")
#: Number of dead workers after which a point fails; also of workers that die in a row at startup.
MAX_DEATHS = 3
#: Maximal number of neighboring points that are reserved for a worker.
MAX_CHUNK = 32
#: Seconds between two checks for an interruption.
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Step:
    """Finished points, and points that start once the finished ones are recorded."""

    finished: tuple[PointResult, ...]
    started: tuple[int, ...]


def split_into_chunks(points: Sequence[int], workers: int) -> deque[deque[int]]:
    """Split points into chunks of neighbors, several per worker."""
    size = min(MAX_CHUNK, max(1, len(points) // (4 * workers)))
    return deque(deque(points[k : k + size]) for k in range(0, len(points), size))


def run_serially(study: Study, points: Sequence[int]) -> Generator[Step, None, None]:
    """Compute points one after another in this process."""
    finished: tuple[PointResult, ...] = ()
    for index in points:
        interrupt.check()
        yield Step(finished, (index,))
        finished = (compute_point(**study.arguments(index)),)
    yield Step(finished, ())


def run_on_processes(
    study: Study, points: Sequence[int], n_workers: int
) -> Generator[Step, None, None]:
    """Compute points in worker processes; each resumption starts the next points."""
    messages: queue.SimpleQueue[tuple[_Worker, str | None]] = queue.SimpleQueue()
    chunks = split_into_chunks(points, n_workers)
    workers: list[_Worker] = []
    deaths: Counter[int] = Counter()
    n_failed_starts = 0
    finished: list[PointResult] = []
    try:
        while True:
            waiting = sum(map(len, chunks)) + sum(len(worker.chunk) for worker in workers)
            for _ in range(min(n_workers - len(workers), waiting)):
                workers.append(_Worker.start(messages))
            started = [worker for worker in workers if _assign_point(worker, workers, chunks)]
            yield Step(
                tuple(finished),
                tuple(worker.point for worker in started if worker.point is not None),
            )
            finished.clear()
            for worker in started:
                worker.send(study)
            if not any(worker.point is not None or not worker.ready for worker in workers):
                return
            for worker, line in drain(messages, POLL_SECONDS):
                if line is None:
                    workers.remove(worker)
                    cause = worker.close()
                    n_failed_starts = 0 if worker.ready else n_failed_starts + 1
                    if n_failed_starts >= MAX_DEATHS:
                        raise InvalidInput("workers", n_workers, f"cannot be started: {cause}")
                    if worker.point is not None:
                        deaths[worker.point] += 1
                        if deaths[worker.point] < MAX_DEATHS:
                            worker.chunk.appendleft(worker.point)
                        else:
                            reason = f"{MAX_DEATHS} worker processes died computing it: {cause}"
                            finished.append(PointResult(worker.point, None, reason, 0.0))
                    if worker.chunk:
                        chunks.appendleft(worker.chunk)
                elif not worker.ready:
                    worker.ready = True
                else:
                    finished.append(PointResult(**json.loads(line)))
                    worker.point = None
    finally:
        for worker in workers:
            worker.close()


def _assign_point(worker: _Worker, workers: list[_Worker], chunks: deque[deque[int]]) -> bool:
    """Assign the next point to an idle worker; return True if it has a new point."""
    if not worker.ready or worker.point is not None:
        return False
    if not worker.chunk and chunks:
        worker.chunk = chunks.popleft()
    if not worker.chunk:
        # All chunks are assigned: take a point from the longest one.
        slowest = max(workers, key=lambda candidate: len(candidate.chunk))
        if slowest.chunk:
            worker.chunk.append(slowest.chunk.pop())
    worker.point = worker.chunk.popleft() if worker.chunk else None
    return worker.point is not None


def drain(messages: queue.SimpleQueue[Any], timeout: float) -> list[Any]:
    """Wait for a message and return all that have arrived; empty after `timeout` seconds."""
    interrupt.check()
    arrived: list[Any] = []
    with suppress(queue.Empty):
        arrived.append(messages.get(timeout=timeout))
        while True:
            arrived.append(messages.get_nowait())
    return arrived


@dataclass(eq=False)
class _Worker:
    """A worker process, the point that it computes and the points reserved for it."""

    process: subprocess.Popen[str]
    stderr: IO[bytes]
    listener: threading.Thread = field(init=False)
    ready: bool = False
    point: int | None = None
    chunk: deque[int] = field(default_factory=deque)

    @classmethod
    def start(cls, messages: queue.SimpleQueue[Any]) -> _Worker:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        options = {"text": True, "encoding": "utf-8"}
        process = start(*COMMAND, stderr=stderr, **options)
        worker = cls(process, stderr)
        worker.listener = threading.Thread(target=worker.listen, args=(messages,), daemon=True)
        worker.listener.start()
        return worker

    def listen(self, messages: queue.SimpleQueue[Any]) -> None:
        """Forward complete lines of the process, and None at the end."""
        assert self.process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self.process.stdout:
                if line.endswith("\n"):
                    messages.put((self, line))
        messages.put((self, None))

    def send(self, study: Study) -> None:
        """Send the assigned point; if the process has died, its listener reports that."""
        assert self.process.stdin is not None and self.point is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(study.arguments(self.point)) + "\n")
            self.process.stdin.flush()

    def close(self) -> str:
        """End the process; return in a few words why it ended."""
        exit_code = self.process.poll()
        self.process.kill()
        self.process.wait()
        self.listener.join()
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.stderr.seek(0)
        errors = self.stderr.read().decode("utf-8", "replace").strip().splitlines()
        self.stderr.close()
        code = self.process.returncode if exit_code is None else exit_code
        if code < 0:
            return f"signal {-code}"
        return f"exit code {code}, {errors[-1][:300]}" if errors else f"exit code {code}"
