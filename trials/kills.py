"""SIGKILL at any moment: nothing that was finished is lost, and the data are the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import xarray as xr
from common import Trial, environment, require, run

import dotphase as dp
from dotphase.study.journal import read_status

SPEC = """
task = "theory"
seeds = 2
[fixed]
log2_points = 12
[sweep]
alpha = [1.2, 1.5, 1.8, 2.1]
branch = ["semantic", "positional"]
"""
#: Seconds in which a study of this size is done from its beginning.
LONGEST = 300


def begin(out: Path, cache: Path) -> subprocess.Popen[bytes]:
    """A study in a process of its own, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dotphase", "study", "run", "spec.toml", "--out", str(out),
         "--workers", "1"],
        env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    every = Path(f"/proc/{pid}/task")
    try:
        return [
            int(child)
            for thread in every.iterdir()
            for child in (thread / "children").read_text().split()
        ] or [int(child) for child in found.read_text().split()]
    except OSError:
        return []


def identical(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether two datasets hold the same, but for when they were begun."""
    return bool(one.drop_attrs().identical(other.drop_attrs()))


def cases(trial: Trial) -> None:
    cache = Path("cache").absolute()
    Path("spec.toml").write_text(SPEC)
    first = begin(Path("whole"), cache)
    require(first.wait(LONGEST) in (0, 3), "the study does not run")
    began = time.monotonic()
    require(begin(Path("again"), cache).wait(LONGEST) in (0, 3), "the study does not run")
    usual = time.monotonic() - began
    whole = dp.read_study("whole")
    for number in range(trial.cases):
        out = Path(f"study{number}")
        whom = trial.choose(("runner", "worker", "figure"))
        with trial.case((number, whom)):
            if whom == "figure":
                _redraw(trial, cache)
            else:
                _kill(trial, out, cache, whom, usual)
                require(identical(dp.read_study(out), whole), "other data than without a kill")


def _kill(trial: Trial, out: Path, cache: Path, whom: str, usual: float) -> None:
    """Kill a runner or a worker once or more, then let the study end."""
    kept = 0
    for _ in range(int(trial.rng.integers(1, 4))):
        process = begin(out, cache)
        time.sleep(float(trial.rng.uniform(0.05, 1)) * usual)
        victims = children(process.pid) if whom == "worker" else [process.pid]
        for victim in victims:
            if process.poll() is None:
                os.kill(victim, signal.SIGKILL)
        # Where workers were killed, or were not there yet, the runner goes on to the end.
        require(process.wait(LONGEST) in (0, 3, -signal.SIGKILL), f"exit {process.returncode}")
        if whom == "runner" and any(out.glob("*")):
            done = read_status(out).done
            require(done >= kept, f"{kept} points were done, now {done}")
            kept = done
    last = begin(out, cache)
    code = last.wait(LONGEST)
    assert last.stderr is not None
    said = last.stderr.read().decode()
    require(code in (0, 3), f"exit {code}: {said[-300:]}")
    require("Traceback" not in said, said[-300:])


DRAW = """
import sys, time
import xarray as xr
from dotphase.figures.parts.style import new_figure
print("ready", flush=True)
while True:
    with new_figure(sys.argv[1], size=(3, 2)) as (figure, axis):
        axis.plot([1, 2, 3])
"""


def _redraw(trial: Trial, cache: Path) -> None:
    """Kill a process that draws a figure again and again: the file is always a whole figure."""
    from PIL import Image

    target = Path("figure.png")
    process = subprocess.Popen(
        [sys.executable, "-c", DRAW, str(target)], env=environment(cache), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    while not target.exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(float(trial.rng.uniform(0, 0.6)))
    process.kill()
    process.wait()
    with Image.open(target) as image:
        image.load()
        require(image.size[0] > 100, f"a figure of {image.size}")


if __name__ == "__main__":
    run(Trial("kills", "SIGKILL of runners, workers and of programs that draw.", 50), cases)
