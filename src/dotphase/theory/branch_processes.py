"""Follow branches of many models along alpha in worker processes.

Between two evaluations a solver runs Python code, one thread at a time, so that threads gain little
on several cores. The caller solves the branches that no worker could solve: models that cannot be
sent to another process, or workers that die.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Sequence

import jax

from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.runtime import threads
from dotphase.runtime.processes import Pool
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: Smallest number of points for which workers, which need some seconds to start, save time.
MIN_POINTS = 200
#: Largest number of workers: each needs half a gigabyte of memory.
MAX_WORKERS = 8

Chain = tuple[Model, str]


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
        requests = [pickle.dumps((*chain, tuple(alphas), settings)) for chain in chains]
    except Exception:  # A user's function may raise anything when it is pickled.
        return {}
    if any(b"__main__" in request for request in requests):
        return {}  # Workers do not run the user's script or notebook, which defines the function.
    waiting, solved = deque(enumerate(requests)), dict[int, list[Solution]]()
    with Pool(min(threads.CORES, MAX_WORKERS)) as pool:
        while waiting or pool.n_busy:
            pool.grow(pool.n_busy + len(waiting))
            for worker in pool.idle()[: len(waiting)]:
                index, request = waiting.popleft()
                worker.call(index, _solve, request)
            try:
                messages = pool.wait()
            except InvalidInput:  # no worker can be started
                return solved
            for index, (_, kind, value) in messages:
                if kind == "result":
                    solved[index] = value
                elif kind == "report" and progress is not None:
                    progress(value)
    return solved


def _solve(request: bytes, report: Callable[[Solution], None]) -> list[Solution]:
    """Follow a branch in a worker."""
    from dotphase.theory.solve import continue_one

    model, branch, alphas, settings = pickle.loads(request)
    return continue_one(model, alphas, branch, settings, report)
