"""Points on this machine: in this process, or in workers that are asked one point at a time.

A worker keeps what it has compiled, so neighbouring points go to the same worker; it is
asked its next point once the last one is in the journal. A worker that dies takes the
point it was computing with it, and nothing else: another is started in its place.
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

#: What the Python of a worker runs.
COMMAND = ("-m", "dotphase.study.worker")
#: Workers that may die over a point before it counts as failed, or in a row at their start.
DEATHS = 3
#: Most neighbouring points that are set aside for a worker at a time.
CHUNK = 32
#: Seconds between two looks whether the study is to stop.
LOOK = 0.2


@dataclass(frozen=True)
class Step:
    """Points that have come back, and points that are sent out once those are recorded."""

    finished: tuple[PointResult, ...]
    started: tuple[int, ...]


def chunks_of(todo: Sequence[int], workers: int) -> deque[deque[int]]:
    """Points in runs of neighbours, several runs for every worker."""
    size = min(CHUNK, max(1, len(todo) // (4 * workers)))
    return deque(deque(todo[k : k + size]) for k in range(0, len(todo), size))


def in_this_process(study: Study, todo: Sequence[int]) -> Generator[Step, None, None]:
    """Compute points one after another, where they are asked for."""
    finished: tuple[PointResult, ...] = ()
    for place in todo:
        interrupt.check()
        yield Step(finished, (place,))
        finished = (compute_point(**study.question(place)),)
    yield Step(finished, ())


def on_processes(study: Study, todo: Sequence[int], workers: int) -> Generator[Step, None, None]:
    """Compute points in worker processes; the next are sent out when this is resumed."""
    messages: queue.SimpleQueue[tuple[_Worker, str | None]] = queue.SimpleQueue()
    chunks = chunks_of(todo, workers)
    crew: list[_Worker] = []
    deaths: Counter[int] = Counter()
    stillborn = 0
    finished: list[PointResult] = []
    try:
        while True:
            waiting = sum(map(len, chunks)) + sum(len(worker.chunk) for worker in crew)
            for _ in range(min(workers - len(crew), waiting)):
                crew.append(_Worker.start(messages))
            sent = [
                (worker, place)
                for worker in crew
                if (place := _next(worker, crew, chunks)) is not None
            ]
            yield Step(tuple(finished), tuple(place for _, place in sent))
            finished.clear()
            for worker, place in sent:
                worker.ask(study, place)
            if not any(worker.place is not None or not worker.ready for worker in crew):
                return
            for worker, line in _drain(messages):
                if line is None:
                    crew.remove(worker)
                    place, cause = worker.bury()
                    stillborn = 0 if worker.ready else stillborn + 1
                    if stillborn >= DEATHS:
                        raise InvalidInput("workers", workers, f"cannot be started: {cause}")
                    if place is not None:
                        deaths[place] += 1
                        if deaths[place] < DEATHS:
                            worker.chunk.appendleft(place)
                        else:
                            reason = f"{DEATHS} worker processes died computing it: {cause}"
                            finished.append(PointResult(place, None, reason, 0.0))
                    if worker.chunk:
                        chunks.appendleft(worker.chunk)
                elif not worker.ready:
                    worker.ready = True
                else:
                    finished.append(PointResult(**json.loads(line)))
                    worker.place = None
    finally:
        for worker in crew:
            worker.bury()


def _next(worker: _Worker, crew: list[_Worker], chunks: deque[deque[int]]) -> int | None:
    """The point a worker should compute next; None if it is busy or nothing is left."""
    if not worker.ready or worker.place is not None:
        return None
    if not worker.chunk and chunks:
        worker.chunk = chunks.popleft()
    if not worker.chunk:
        # Nothing is left to hand out: help whoever has most.
        slowest = max(crew, key=lambda other: len(other.chunk))
        if slowest.chunk:
            worker.chunk.append(slowest.chunk.pop())
    worker.place = worker.chunk.popleft() if worker.chunk else None
    return worker.place


def _drain(messages: queue.SimpleQueue[Any]) -> list[Any]:
    """All messages there are, at least one."""
    found: list[Any] = []
    while not found:
        interrupt.check()
        with suppress(queue.Empty):
            found.append(messages.get(timeout=LOOK))
            while True:
                found.append(messages.get_nowait())
    return found


@dataclass(eq=False)
class _Worker:
    """A worker process, the point it computes and the points set aside for it."""

    process: subprocess.Popen[str]
    stderr: IO[bytes]
    listener: threading.Thread = field(init=False)
    ready: bool = False
    place: int | None = None
    chunk: deque[int] = field(default_factory=deque)

    @classmethod
    def start(cls, messages: queue.SimpleQueue[Any]) -> _Worker:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by bury)
        options = {"text": True, "encoding": "utf-8"}
        process = start(*COMMAND, stderr=stderr, **options)
        worker = cls(process, stderr)
        worker.listener = threading.Thread(target=worker.listen, args=(messages,), daemon=True)
        worker.listener.start()
        return worker

    def listen(self, messages: queue.SimpleQueue[Any]) -> None:
        """Hand on its lines; one that a dying worker left unfinished is no answer."""
        assert self.process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self.process.stdout:
                if line.endswith("\n"):
                    messages.put((self, line))
        messages.put((self, None))

    def ask(self, study: Study, place: int) -> None:
        """Send a point; if the worker has died meanwhile, its listener tells."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(study.question(place)) + "\n")
            self.process.stdin.flush()

    def bury(self) -> tuple[int | None, str]:
        """End the process; the point it was computing, and in a few words why it ended."""
        died = self.process.poll()
        self.process.kill()
        self.process.wait()
        self.listener.join()
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.stderr.seek(0)
        said = self.stderr.read().decode("utf-8", "replace").strip().splitlines()
        self.stderr.close()
        code = self.process.returncode if died is None else died
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self.place, f"{cause}, {said[-1][:300]}" if said and code >= 0 else cause
