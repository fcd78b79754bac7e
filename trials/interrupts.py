"""Ctrl-C at any moment, also while something is compiled: exit 130 within two seconds, one line."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from common import Trial, environment, program, require, run

#: Seconds from the signal to the end.
LIMIT = 2.0
COMMANDS = (
    "amp --d 50 --alpha 1 --start semantic --seeds 60",
    "train --d 100 --alpha 1 --start semantic --seeds 2000",
    "train --d 100 --alpha 1 --start semantic --optimizer gd --seeds 400 --json",
    "curve --alphas 0.5:2:40 --out c.nc",
    "critical",
    "diagram --alphas 0.5:2:8 --omegas 0:0.4:8 --out d.nc",
    "dynamics --alpha 1 --start semantic --lr 4 --steps 400",
    "compare --alphas 0.8:2:8 --d 200 --seeds 50",
    "histogram --runs 1 --samples 3000 --epochs 500 --out h",
    "study run spec.toml --out s --engine serial",
    "solve --alpha 1 --breaking 1",
    "reproduction transition --quick --out r",
)


def cases(trial: Trial) -> None:
    with open("spec.toml", "w", encoding="utf-8") as file:
        file.write('task = "theory"\nseeds = 40\n[sweep]\nalpha = [0.8, 1.0, 1.2, 1.4, 1.6, 1.8]\n')
    slowest = 0.0
    for number in range(trial.cases):
        command = trial.choose(COMMANDS)
        cache = trial.choose(("cache", f"cache{number}"))
        which = trial.choose((signal.SIGINT, signal.SIGINT, signal.SIGTERM))
        after = float(trial.rng.uniform(0.3, 6))
        with trial.case((command, cache, which.name, round(after, 2))):
            slowest = max(slowest, _interrupt(command, cache, which, after))
    trial.notes["slowest"] = f"{slowest:.1f} s"


def _interrupt(command: str, cache: str, which: signal.Signals, after: float) -> float:
    """Seconds from the signal to the end."""
    process = subprocess.Popen(
        program(command),
        env=environment(os.path.abspath(cache)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    # The handler is there once the program has begun; before, Python itself is interrupted.
    began = time.monotonic()
    while time.monotonic() - began < max(after, 1.5) and process.poll() is None:
        time.sleep(0.02)
    if process.poll() is not None:
        process.communicate()
        return 0.0  # it was done before
    sent = time.monotonic()
    process.send_signal(which)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    taken = time.monotonic() - sent
    require(process.returncode == 130, f"exit {process.returncode}: {err[-300:]}")
    require("Traceback" not in err and "Exception ignored" not in err, err[-300:])
    told = [line for line in err.splitlines() if line.startswith("dotphase: ")]
    require(len(told) == 1 and "interrupted" in told[0], f"told: {err[-300:]}")
    require(taken <= LIMIT * patience(), f"{taken:.1f} s")
    return taken


def patience() -> float:
    """How much longer everything takes where others compute as well."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


if __name__ == "__main__":
    run(Trial("interrupts", "SIGINT and SIGTERM while commands compute and compile.", 50), cases)
