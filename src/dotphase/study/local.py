"""Compute points on this machine: in this process, or in worker processes.

Neighboring points go to the same worker, which reuses its compiled functions. A worker receives
its next point once the previous one is in the journal. A worker that dies loses only the point that
it was computing, and is replaced.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from dotphase.runtime import interrupt
from dotphase.runtime.processes import Pool, Worker
from dotphase.storage.journal import PointResult
from dotphase.study.spec import Study
from dotphase.study.tasks import compute_point

#: Number of dead workers after which a point fails.
MAX_DEATHS = 3
#: Maximal number of neighboring points that are reserved for a worker.
MAX_CHUNK = 32


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
    study: Study, points: Sequence[int], n_workers: int, max_seconds: float = 0.0
) -> Generator[Step, None, None]:
    """Compute points in worker processes; each resumption starts the next points.

    A point that takes longer than `max_seconds` fails; 0 for no limit.
    """
    queues = _Queues(split_into_chunks(points, n_workers))
    deaths: Counter[int] = Counter()
    finished: list[PointResult] = []
    with Pool(n_workers) as pool:
        while True:
            pool.grow(pool.n_busy + len(queues))
            taken = ((worker, queues.take(worker)) for worker in pool.idle())
            started = {worker: index for worker, index in taken if index is not None}
            yield Step(tuple(finished), tuple(started.values()))
            finished.clear()
            for worker, index in started.items():
                arguments = study.arguments(index)
                worker.call(index, _compute, arguments, max_seconds=max_seconds)
            if not pool.n_busy and not queues:
                return
            for index, (worker, kind, value) in pool.wait():
                if kind in ("death", "late"):
                    queues.release(worker)
                if kind == "result":
                    finished.append(value)
                elif index is None:  # an idle worker has died
                    continue
                elif kind == "death" and deaths[index] < MAX_DEATHS - 1:
                    deaths[index] += 1
                    queues.chunks.appendleft(deque([index]))
                else:
                    died = f"{MAX_DEATHS} worker processes died computing it: "
                    reason = died + value if kind == "death" else value
                    finished.append(PointResult(index, None, reason, 0.0))


def _compute(arguments: dict[str, Any], report: Callable[[Any], None]) -> PointResult:
    """Compute a point in a worker, without reports in between."""
    return compute_point(**arguments)


class _Queues:
    """Chunks of neighboring points, and those that are reserved for the workers."""

    def __init__(self, chunks: deque[deque[int]]) -> None:
        self.chunks = chunks
        self._reserved: defaultdict[Worker, deque[int]] = defaultdict(deque)

    def __len__(self) -> int:
        return sum(map(len, self.chunks)) + sum(map(len, self._reserved.values()))

    def take(self, worker: Worker) -> int | None:
        """Take the next point of a worker; None if there is none."""
        chunk = self._reserved[worker]
        if not chunk and self.chunks:
            chunk = self._reserved[worker] = self.chunks.popleft()
        if chunk:
            return chunk.popleft()
        # All chunks are reserved: take the last point of the longest one.
        longest = max(self._reserved.values(), key=len)
        return longest.pop() if longest else None

    def release(self, worker: Worker) -> None:
        """Return the points reserved for a worker that has died."""
        if chunk := self._reserved.pop(worker, None):
            self.chunks.appendleft(chunk)
