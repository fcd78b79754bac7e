"""Branches of many models along alpha, in processes of their own.

Between two averages a solver works in Python, of which one thread runs at a time: threads share two
cores to little avail. A worker (``python -m dotphase.theory.branch_processes``) is asked one
chain at a time, and answers with every solution, then with all of them: pickled, between
a program and its own workers alone, never from disk. What cannot be done that way (models that
another process cannot be told of, workers that die) is left to whoever asked.
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
from functools import partial
from typing import Any, NamedTuple

import jax

from dotphase.model import Model
from dotphase.runtime import interrupt, subprocesses, threads
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: Points from which on it is worth starting workers, which takes some seconds.
MANY = 200
#: Most workers: each takes half a gigabyte.
MOST = 8
#: Seconds between two looks whether to stop.
LOOK = 0.2

Chain = tuple[Model, str]


class Asked(NamedTuple):
    """A chain of a branch along alpha, as a worker is asked for it."""

    model: Model
    branch: str
    alphas: tuple[float, ...]
    settings: SolverSettings


def worth_it(chains: int, alphas: int) -> bool:
    """Whether workers are sooner done than threads."""
    enough = chains > 1 and chains * alphas >= MANY
    return enough and threads.CORES > 1 and jax.default_backend() == "cpu"


def in_processes(
    chains: Sequence[Chain],
    alphas: Sequence[float],
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
) -> dict[int, list[Solution]]:
    """The solutions of the chains that workers could compute, by their place among the chains."""
    try:
        questions = [pickle.dumps(Asked(*chain, tuple(alphas), settings)) for chain in chains]
    except Exception:  # whatever a user's functions may raise: they cannot be told of
        return {}
    if any(b"__main__" in question for question in questions):
        return {}  # functions of a script or a notebook, which workers do not run
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for place in range(len(chains)):
        waiting.put(place)
    found: dict[int, list[Solution]] = {}
    crew = [
        subprocesses.start("-m", "dotphase.theory.branch_processes", complaints=subprocess.DEVNULL)
        for _ in range(min(threads.CORES, MOST, len(chains)))
    ]

    def serve(worker: subprocess.Popen[bytes]) -> None:
        """Ask a worker for one chain after another, until it or they come to an end."""
        assert worker.stdin is not None and worker.stdout is not None
        with suppress(queue.Empty, EOFError, OSError, ValueError, pickle.UnpicklingError):
            while True:
                place = waiting.get_nowait()
                worker.stdin.write(questions[place])
                worker.stdin.flush()
                while isinstance(answer := pickle.load(worker.stdout), Solution):
                    if progress is not None:
                        progress(answer)
                found[place] = answer

    listeners = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in crew]
    try:
        for listener in listeners:
            listener.start()
        for listener in listeners:
            while listener.is_alive():
                interrupt.check()
                listener.join(LOOK)
    finally:
        for worker, listener in zip(crew, listeners, strict=True):
            worker.kill()
            worker.wait()
            listener.join()
            for end in (worker.stdin, worker.stdout):
                with suppress(OSError):
                    assert end is not None
                    end.close()
    return found


def main() -> None:
    """Answer until the input ends, which it does as well when whoever asked is gone."""
    from dotphase.runtime.precision import in_double_precision
    from dotphase.theory.driver import run_quietly
    from dotphase.theory.solve import continue_one

    answers = open(subprocesses.take_over_output(), "wb")  # noqa: SIM115 (until the process ends)
    questions: queue.SimpleQueue[Asked] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions,), daemon=True).start()

    def say(answer: Any) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    solve = in_double_precision(run_quietly)
    while True:
        model, branch, alphas, settings = questions.get()
        say(solve(partial(continue_one, model, alphas, branch, settings, say)))


def _listen(questions: queue.SimpleQueue[Asked]) -> None:
    # Also where a question cannot be read: nobody can be answered then.
    with suppress(Exception):
        while True:
            questions.put(pickle.load(sys.stdin.buffer))
    os._exit(0)


if __name__ == "__main__":
    main()
