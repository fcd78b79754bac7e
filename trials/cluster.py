"""Studies on a Dask cluster that loses its scheduler, workers, memory or patience."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import xarray as xr
from common import Trial, environment, folder, require, run

import dotphase as dp

#: Seconds that one study may take.
LIMIT = 600
#: A model that hangs, dies or takes memory at one value of its parameter.
MODEL = """
import os, time
import numpy as np
import dotphase as dp

def model(ridge: float = 0.01, act: str = "", at: float = 1.0):
    if ridge == at:
        if act == "hang":
            while True: pass
        if act == "sleep":
            time.sleep(10000)
        if act == "memory":
            blocks = []
            while True:
                blocks.append(np.ones(10**7)); time.sleep(0.02)
        if act == "exit":
            os._exit(3)
    return dp.positional_semantic(ridge=ridge)
"""
RIDGES = [0.01, 0.02, 0.05, 0.1]
#: Preloaded modules that make a worker look like one of another version.
VERSIONS = {
    "dotphase": "import dotphase\ndotphase.__version__ = '0.0.1'\n",
    "dask": "import dask, distributed\n"
    "dask.__version__ = distributed.__version__ = '2000.1.0'\n"
    "from distributed import versions\n"
    "get = versions.get_package_info\n"
    "versions.get_package_info = lambda p: get(p) | {'dask': '2000.1.0', 'distributed': '1'}\n",
}


def study(act: str = "", at: float = 1.0) -> dp.Study:
    fixed = {"alpha": 2.0, "log2_points": 12, "act": act, "at": at}
    return dp.Study("theory", fixed, {"ridge": RIDGES}, model="model.py:model")


def port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Cluster:
    """A scheduler and a worker in processes of their own, at one address."""

    def __init__(self, stack: ExitStack, cache: Path) -> None:
        self.port, self._stack, self._environment = port(), stack, environment(cache)
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start_scheduler()

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{module}", *arguments],
            env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return process

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--port", str(self.port))
        process = self._start("scheduler", *where, "--no-dashboard")
        for _ in range(LIMIT * 10):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.1)
        raise AssertionError("the scheduler does not start")

    def start_worker(self, *more: str) -> subprocess.Popen[bytes]:
        one = ("--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--local-directory", ".")
        return self._start("worker", self.address, *one, *more)


@contextmanager
def cluster(cache: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack, cache)


def computed(where: Cluster, work: dp.Study, name: str, **more: Any) -> xr.Dataset:
    """Run a study on a cluster; a hang fails the case."""
    results: list[Any] = []

    def compute() -> None:
        try:
            results.append(dp.run_study(work, name, engine="dask", scheduler=where.address, **more))
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    thread.join(LIMIT)
    require(bool(results), f"no end within {LIMIT} s")
    if isinstance(results[0], BaseException):
        raise results[0]
    dataset: xr.Dataset = results[0]
    return dataset


def same(dataset: xr.Dataset, expected: xr.Dataset) -> None:
    require(bool(dataset["done"].all()), f"failed: {dataset['reason'].values.ravel()}")
    require(dataset.drop_attrs().equals(expected.drop_attrs()), "other numbers")


def other_version(trial: Trial, where: Cluster, expected: xr.Dataset) -> None:
    """A worker of another dotphase computes nothing; one of another Dask the same numbers."""
    which = trial.choose(VERSIONS)
    with trial.case(("another version of", which)):
        Path("preloaded.py").write_text(VERSIONS[which])
        where.start_worker("--preload", "preloaded.py")
        dataset = computed(where, study(), "s")
        if which == "dotphase":
            reasons = set(dataset["reason"].values.ravel())
            require(not dataset["done"].any(), "computed by another version")
            require(all("must be" in reason for reason in reasons), f"reasons: {reasons}")
        else:
            same(dataset, expected)


def scheduler_restart(trial: Trial, where: Cluster, expected: xr.Dataset) -> None:
    """A scheduler that is killed and started again: all points at once, or after resuming."""
    after, pause = int(trial.rng.integers(0, 3)), float(trial.choose((0, 1, 5)))
    gone: list[bool] = []
    with trial.case(("scheduler restarts", after, pause)):
        where.start_worker()

        def restart(event: Any) -> None:
            if event.done >= after and not gone:
                gone.append(True)
                where.scheduler.kill()
                where.scheduler.wait()
                time.sleep(pause)
                where.start_scheduler()
                where.start_worker()

        try:
            dataset = computed(where, study(), "s", progress=restart)
        except dp.InvalidInput as error:
            require("was lost" in str(error) and "\n" not in str(error), str(error))
            require(dp.read_status("s").done >= after, "points were lost")
            dataset = computed(where, study(), "s")
        same(dataset, expected)


def client_restart(trial: Trial, where: Cluster, expected: xr.Dataset) -> None:
    """Somebody else restarts all workers of the cluster in mid-study."""
    from distributed import Client

    delay = float(trial.rng.uniform(0.5, 6))
    with trial.case(("workers restart", round(delay, 1))):
        where.start_worker()

        def restart() -> None:
            time.sleep(delay)
            with Client(where.address, set_as_default=False) as client:
                client.restart(timeout=60, wait_for_workers=False)

        thread = threading.Thread(target=restart)
        thread.start()
        try:
            same(computed(where, study(), "s"), expected)
        finally:
            thread.join()


def harmful_point(trial: Trial, where: Cluster, expected: xr.Dataset) -> None:
    """One point hangs, dies or takes all memory: it fails alone."""
    act, at = trial.choose(("hang", "sleep", "memory", "exit")), float(trial.choose(RIDGES))
    with trial.case((act, at)):
        where.start_worker("--memory-limit", "1GB")
        limit = {"max_seconds": 20.0} if act in ("hang", "sleep") else {}
        dataset = computed(where, study(act, at), "s", **limit)
        others = [ridge for ridge in RIDGES if ridge != at]
        require(not dataset["done"].sel(ridge=at).any(), "a point that ends its worker is done")
        same(dataset.sel(ridge=others), expected.sel(ridge=others))
        reason = str(dataset["reason"].sel(ridge=at).values.item())
        word = "took longer" if limit else "workers died"
        require(word in reason, reason)


def cases(trial: Trial) -> None:
    cache = Path("cache").absolute()
    os.environ["DOTPHASE_CACHE"] = str(cache)
    kinds: tuple[Callable[[Trial, Cluster, xr.Dataset], None], ...] = (
        other_version, scheduler_restart, harmful_point, client_restart, harmful_point,
    )  # fmt: skip
    warnings.filterwarnings("ignore", ".*is not encrypted")
    with folder():
        Path("model.py").write_text(MODEL)
        expected = dp.run_study(study(), "expected", engine="serial")
    for number in range(trial.cases):
        with folder(), cluster(cache) as where:
            Path("model.py").write_text(MODEL)
            kinds[number % len(kinds)](trial, where, expected)


if __name__ == "__main__":
    about = "Dask clusters that lose scheduler, workers, memory; workers of another version."
    run(Trial("cluster", about, 10), cases)
