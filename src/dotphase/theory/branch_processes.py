"""Follow branches of many models along alpha in worker processes.

Between two evaluations a solver runs Python code, one thread at a time, so that threads gain little
on several cores. A worker (``python -m dotphase.theory.branch_processes``) reads one request at a
time and writes each solution, then the list of all of them. Both are pickled, between a program and
its own workers only, never from disk. The caller solves the branches that no worker could solve:
models that cannot be sent to another process, or workers that die.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import jax

from dotphase.model import Model
from dotphase.runtime import interrupt, subprocesses, threads
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: Smallest number of points for which workers, which need some seconds to start, save time.
MIN_POINTS = 200
#: Largest number of workers: each needs half a gigabyte of memory.
MAX_WORKERS = 8
#: Seconds between two checks for an interruption.
CHECK_INTERVAL = 0.2

Chain = tuple[Model, str]


class Request(NamedTuple):
    """A branch of a model and the alphas at which a worker solves it."""

    model: Model
    branch: str
    alphas: tuple[float, ...]
    settings: SolverSettings


def worth_it(chains: int, alphas: int) -> bool:
    """True if worker processes are faster than threads."""
    is_large = chains > 1 and chains * alphas >= MIN_POINTS
    return is_large and threads.CORES > 1 and jax.default_backend() == "cpu"


def in_processes(
    chains: Sequence[Chain],
    alphas: Sequence[float],
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
) -> dict[int, list[Solution]]:
    """Solve chains in worker processes; solutions by index, for the chains that succeeded."""
    try:
        requests = [pickle.dumps(Request(*chain, tuple(alphas), settings)) for chain in chains]
    except Exception:  # A user's function may raise anything when it is pickled.
        return {}
    if any(b"__main__" in request for request in requests):
        return {}  # Workers do not run the user's script or notebook, which defines the function.
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(chains)):
        waiting.put(index)
    solved: dict[int, list[Solution]] = {}
    workers = [
        subprocesses.start("-m", "dotphase.theory.branch_processes", stderr=subprocess.DEVNULL)
        for _ in range(min(threads.CORES, MAX_WORKERS, len(chains)))
    ]

    def serve(worker: subprocess.Popen[bytes]) -> None:
        """Send chains to a worker until none is left or the worker dies."""
        assert worker.stdin is not None and worker.stdout is not None
        with suppress(queue.Empty, EOFError, OSError, ValueError, pickle.UnpicklingError):
            while True:
                index = waiting.get_nowait()
                worker.stdin.write(requests[index])
                worker.stdin.flush()
                while isinstance(answer := pickle.load(worker.stdout), Solution):
                    if progress is not None:
                        progress(answer)
                solved[index] = answer

    listeners = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
    try:
        for listener in listeners:
            listener.start()
        for listener in listeners:
            while listener.is_alive():
                interrupt.check()
                listener.join(CHECK_INTERVAL)
    finally:
        for worker, listener in zip(workers, listeners, strict=True):
            worker.kill()
            worker.wait()
            listener.join()
            for stream in (worker.stdin, worker.stdout):
                with suppress(OSError):
                    assert stream is not None
                    stream.close()
    return solved


def main() -> None:
    """Solve requests until the input ends, as it does when the parent process dies."""
    from dotphase.theory.solve import continue_one

    answers = open(subprocesses.take_over_output(), "wb")  # noqa: SIM115 (until the process ends)
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()

    def write(answer: Any) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    while True:
        model, branch, alphas, settings = requests.get()
        write(continue_one(model, alphas, branch, settings, write))


def _listen(requests: queue.SimpleQueue[Request]) -> None:
    """Queue requests; end the process when the input ends or cannot be read."""
    with suppress(Exception):
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    os._exit(0)


if __name__ == "__main__":
    main()
