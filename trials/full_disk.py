"""A disk or an output that is full: results are printed, one line says so, old files stay."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from common import Trial, environment, program, require, run

#: Commands that write, what they write, and whether they print their results as JSON.
COMMANDS = (
    ("curve --alphas 1:2:2 --log2-points 12 --out c.nc --json", "c.nc", True),
    ("curve --alphas 1:2:2 --log2-points 12 --out c.nc --plot c.png", "c.nc", False),
    ("train --d 30 --alpha 1 --start semantic --seeds 1 --plot t.png --json", "t.png", True),
    ("amp --d 30 --alpha 1 --start semantic --iterations 3 --plot a.svg --json", "a.svg", True),
    ("dynamics --alpha 1 --start semantic --lr 4 --steps 3 --ensemble 6 --repetitions 2 "
     "--out y.nc --json", "y.nc", True),
    ("compare --alphas 1:1.5:2 --d 30 --seeds 2 --log2-points 12 --out p.nc --json", "p.nc", True),
    ("histogram --mechanism semantic --runs 1 --epochs 1 --samples 300 --out h --json", "h", False),
    ("reproduction quadrature --quick --out r --json", "r", False),
    ("study run spec.toml --out s --engine serial --json", "s", False),
)  # fmt: skip
SPEC = 'task = "regression"\n[sweep]\nalpha = [0.5, 1.0, 2.0]\n'


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def quick(cache: Path) -> dict[str, str]:
    """Variables of programs that compile fast, for code that runs briefly."""
    return environment(cache) | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}


def cases(trial: Trial) -> None:
    Path("spec.toml").write_text(SPEC)
    cache = Path("cache").absolute()
    for command, *_ in COMMANDS[: trial.cases]:
        # Kept for later: with a full disk no compiled function can be stored.
        subprocess.run(program(command), env=quick(cache), capture_output=True, timeout=600)
    for number in range(trial.cases):
        command, file, prints = COMMANDS[number % len(COMMANDS)]
        size = int(trial.choose((0, 100, 4000, 4096 * 3)))
        with trial.case((command, size)):
            _full(command, file, prints, size, cache)
    for output in ("/dev/full", "closed"):
        with trial.case(output):
            _output(output, cache)


def _full(command: str, file: str, prints: bool, size: int, cache: Path) -> None:
    old = Path(file)
    if old.suffix:
        old.write_bytes(b"old")
    done = subprocess.run(
        program(command), env=quick(cache),
        capture_output=True, text=True, preexec_fn=lambda: _limit(size), timeout=600,
    )  # fmt: skip
    told = [line for line in done.stderr.splitlines() if line.startswith("dotphase: ")]
    require("Traceback" not in done.stderr, done.stderr[-400:])
    require(done.returncode in (0, 2, 3), f"exit {done.returncode}: {done.stderr[-300:]}")
    if done.returncode == 2:
        require(1 <= len(told) <= 2, f"{len(told)} lines: {done.stderr[-300:]}")
    if prints:
        json.loads(done.stdout)
        require(done.returncode == 2 or old.read_bytes() != b"old", "nothing written, nothing said")
    if old.suffix and done.returncode == 2:
        require(old.read_bytes() == b"old", "the old file is gone")
    left = [path for path in Path().glob(".*-*") if path.stat().st_size == 0]
    require(not left, f"left behind: {left}")


def _output(output: str, cache: Path) -> None:
    command = [sys.executable, "-m", "dotphase", "solve", "--alpha", "2", "--log2-points", "12"]
    if output == "closed":
        done = subprocess.run(
            f"{' '.join(command)} >&-", shell=True, env=environment(cache), stderr=subprocess.PIPE,
            text=True, timeout=600,
        )  # fmt: skip
    else:
        with open(output, "wb") as full:
            done = subprocess.run(
                command, env=environment(cache), stdout=full, stderr=subprocess.PIPE, text=True,
                timeout=600,
            )  # fmt: skip
    require(done.returncode in (0, 2), f"exit {done.returncode}: {done.stderr[-300:]}")
    require("Traceback" not in done.stderr, done.stderr[-300:])
    require(len(done.stderr.splitlines()) <= 1, f"told: {done.stderr[-300:]}")


if __name__ == "__main__":
    os.umask(0o077)
    run(Trial("full disk", "Commands that write where nothing can be written.", 18), cases)
