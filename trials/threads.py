"""Threads, event loops, forks and clocks that jump: the same numbers, and a host left as it was."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import jax
import matplotlib
import numpy as np
from common import Trial, environment, require, run
from host_settings import CALLS as ALL_CALLS
from host_settings import PAPER, same

import dotphase as dp

#: Calls that take less than a second once they are compiled.
NAMES = ("train", "train, float32", "train, sgd", "amp", "grid", "dynamics", "solve", "curve")
CALLS = {name: ALL_CALLS[name] for name in NAMES}
STUDY = dp.Study("theory", {"log2_points": 12}, {"alpha": [1.6, 2.0]})
#: Calls at once, and seconds after which they hang.
TOGETHER, LIMIT = 4, 300
jumps = random.Random(0)
#: Clocks that jump, as functions of the true time.
CLOCKS: dict[str, Callable[[float], float]] = {
    "a year back": lambda t: t - 3e7, "years ahead": lambda t: t + 1e9,
    "standing": lambda t: 1.7e9, "jumping": lambda t: t + jumps.choice((-3600, 0, 3600)),
    "negative": lambda t: -t,
}  # fmt: skip
#: A process that forks after the import, and again after a computation.
FORK = """
import os, sys
import dotphase as dp
before = BEFORE
if before:
    dp.solve(dp.positional_semantic(), 2.0, log2_points=12)
else:
    dp.solve, dp.train, dp.curve
child = os.fork()
try:
    solution = dp.solve(dp.positional_semantic(), 2.0, log2_points=12)
    print(repr(solution.train_loss), flush=True)
except dp.InvalidInput as error:
    print(f"refused: {error}", flush=True)
except BaseException as error:
    print(f"wrong: {error!r}", flush=True)
if child:
    os.waitpid(child, 0)
os._exit(0)
"""


def host() -> dict[str, Any]:
    """Settings of the process that belong to the host program."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("dotphase")]
    return {
        "jax": {name: getattr(jax.config, name, None) for name in dict(jax.config.values)},
        "numpy": np.geterr(), "print": np.get_printoptions(), "random": random.getstate(),
        "legacy": [str(part) for part in np.random.get_state()],  # noqa: NPY002
        "filters": list(warnings.filters), "rcParams": dict(matplotlib.rcParams),
        "backend": matplotlib.get_backend(), "environment": dict(os.environ),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "folder": os.getcwd(), "path": list(sys.path), "hooks": (sys.excepthook, sys.stdout),
        "levels": {name: logging.getLogger(name).level for name in ["", *names]},
        "handlers": list(logging.getLogger().handlers),
    }  # fmt: skip


@contextmanager
def unchanged() -> Iterator[None]:
    """Require that a block changes no setting of the host."""
    before = host()
    yield
    after = host()
    changed = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    require(not changed, f"changed: {list(changed)}: {str(changed)[:300]}")


def draw() -> None:
    dp.plot.curve(dp.curve(PAPER, [1.8, 2.0], ["semantic"], log2_points=12), "figure.png")


def in_threads(trial: Trial, expected: dict[str, Any]) -> None:
    """Calls of several engines, and a figure, in threads at once."""
    names = [trial.choose(CALLS) for _ in range(TOGETHER)]
    with trial.case(("threads", names)), unchanged(), ThreadPoolExecutor(TOGETHER + 1) as pool:
        figure = pool.submit(draw)
        for name, future in [(name, pool.submit(CALLS[name])) for name in names]:
            same(expected[name], future.result(LIMIT))
        figure.result(LIMIT)


def in_a_loop(trial: Trial, expected: dict[str, Any]) -> None:
    """Calls in the threads of an event loop; one is cancelled, one has a deadline."""
    names = [trial.choose(CALLS) for _ in range(TOGETHER)]
    started = threading.Event()

    def long() -> Any:
        started.set()
        return dp.train(PAPER, 2.0, 60, seeds=3, steps=40)

    async def together() -> None:
        cancelled = asyncio.create_task(asyncio.to_thread(long))
        await asyncio.to_thread(started.wait, LIMIT)
        late = asyncio.wait_for(asyncio.to_thread(long), trial.rng.uniform(0.01, 0.2))
        cancelled.cancel()
        calls = [asyncio.to_thread(CALLS[name]) for name in names]
        ended, timed, *results = await asyncio.wait_for(
            asyncio.gather(cancelled, late, *calls, return_exceptions=True), LIMIT
        )
        require(isinstance(ended, asyncio.CancelledError), f"not cancelled: {ended!r}")
        require(isinstance(timed, TimeoutError | dp.results.Training), f"no deadline: {timed!r}")
        for name, result in zip(names, results, strict=True):
            require(not isinstance(result, BaseException), f"{name}: {result!r}")
            same(expected[name], result)

    with trial.case(("event loop", names)), unchanged():
        asyncio.run(together())


def clock(trial: Trial, expected: dict[str, Any]) -> None:
    """A study and a solution with a time limit while the clock of the system jumps."""
    name, (other, call) = trial.choose(CLOCKS), trial.choose(CALLS.items())
    true = time.time
    with trial.case(("clock", name, other)), unchanged():
        folder = f"clock{trial.tried}"
        time.time = lambda: CLOCKS[name](true())  # type: ignore[assignment]
        try:
            events: list[dp.results.ProgressEvent] = []
            dataset = dp.run_study(STUDY, folder, engine="serial", progress=events.append)
            status = dp.read_status(folder)
            solution = dp.solve(PAPER, 2.0, log2_points=12, max_seconds=LIMIT)
            same(expected[other], call())
        finally:
            time.time = true  # type: ignore[assignment]
        require(bool(dataset["done"].all()) and status.done == 2, "points are missing")
        require(solution.converged, "stopped by a clock that jumped")
        left = [event.result.seconds_left for event in events] + [status.seconds_left]
        sound = all(value is None or 0 <= value < 1e7 for value in left)
        require(sound, f"seconds left: {left}")


def fork(trial: Trial, expected: dict[str, Any]) -> None:
    """A fork after the import computes; a fork after a computation says why it cannot."""
    before = bool(trial.choose((True, False)))
    with trial.case(("fork", "after a computation" if before else "after the import")):
        program = [sys.executable, "-c", FORK.replace("BEFORE", str(before))]
        done = subprocess.run(
            program, env=environment(os.path.abspath("cache")), capture_output=True, text=True,
            timeout=LIMIT,
        )  # fmt: skip
        lines = sorted(done.stdout.splitlines())
        numbers = {line for line in lines if not line.startswith(("refused", "wrong"))}
        require(len(lines) == 2, f"said: {done.stdout} {done.stderr[-300:]}")
        require(len(numbers) == 1, f"other numbers: {lines}")
        refused = [line for line in lines if line.startswith("refused: process = ")]
        require(len(refused) == before, f"said: {lines}")


def cases(trial: Trial) -> None:
    expected = {name: CALLS[name]() for name in CALLS}
    draw()
    kinds = (in_threads, in_a_loop, clock, in_threads, in_a_loop, fork)
    while trial.tried < trial.cases:
        kinds[trial.tried % len(kinds)](trial, expected)


if __name__ == "__main__":
    run(Trial("threads", "Threads, event loops, forks and clocks that jump.", 24), cases)
