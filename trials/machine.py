"""Other numbers of threads and other batches: the same numbers to 1e-9."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import Trial, environment, require, run

#: Largest relative difference.
SAME = 1e-9
#: Threads to compute on; the first is what the others are compared with.
THREADS = (1, 2, 3)
#: Computes on as many threads as it finds; prints every number by name.
PROGRAM = """
import json, sys
import numpy as np
import dotphase as dp

seed, found = int(sys.argv[1]), {}
model = dp.positional_semantic(omega=0.2 + 0.01 * (seed % 10))

def note(name, more="", **values):
    for part, value in values.items():
        found[f"{name}: {part}{more}"] = np.ravel(np.asarray(value, float)).tolist()

for branch in ("semantic", "positional"):
    one = dp.solve(model, 1.5, branch, seed=seed, log2_points=14)
    note(f"solve {branch}", loss=one.train_loss, error=one.test_error, theta=one.overlaps.theta)
for batch in (1, 3):
    options = {"seeds": 3, "seed": seed, "runs_per_batch": batch}
    runs = dp.train(model, 1.5, 100, start="semantic", **options).runs
    losses, errors = [r.train_loss for r in runs], [r.test_error for r in runs]
    note("train", f" (batch {batch})", loss=losses, error=errors)
runs = dp.amp(model, 2.0, 100, seeds=2, seed=seed, start="semantic").runs
note("amp", loss=[r.train_loss for r in runs], error=[r.test_error for r in runs])
small = {"log2_ensemble": 9, "repetitions": 3, "rtol": None}
path = dp.dynamics(model, 1.5, steps=20, lr=4.0, seed=seed, **small)
note("dynamics", loss=path.train_loss, theta=path.theta)
study = dp.Study("theory", {"log2_points": 12}, {"alpha": [1.4, 1.8]}, seeds=[seed])
note("study", loss=dp.run_study(study, "study", engine="serial")["train_loss"].values)
print(json.dumps(found))
"""


def numbers(threads: int, seed: int) -> dict[str, list[float]]:
    """Every number, computed on so many threads."""
    place = Path(f"threads{threads}-{seed}")
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed)], capture_output=True, text=True, cwd=place,
        env=environment() | {"NPROC": str(threads)},
    )  # fmt: skip
    require(done.returncode == 0, done.stderr[-500:])
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def difference(one: list[float], other: list[float]) -> float:
    """Largest difference, relative to the largest number."""
    size = max(map(abs, one)) or 1.0
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) / size


def cases(trial: Trial) -> None:
    worst: dict[str, Any] = {}
    for number in range(trial.cases):
        found = {threads: numbers(threads, trial.seed + number) for threads in THREADS}
        first = found[THREADS[0]]
        for threads in THREADS[1:]:
            for name, values in first.items():
                _compare(trial, f"{name}, {threads} threads", values, found[threads][name], worst)
        for name, values in first.items():
            if name.endswith("(batch 1)"):
                other = first[name.replace("batch 1", "batch 3")]
                _compare(trial, f"{name} and batch 3", values, other, worst)
    name = max(worst, key=lambda key: float(worst[key]))
    trial.notes["largest difference"] = f"{worst[name]:.0e} ({name})"


def _compare(
    trial: Trial, name: str, one: list[float], other: list[float], worst: dict[str, Any]
) -> None:
    with trial.case(name):
        worst[name] = max(worst.get(name, 0.0), difference(one, other))
        require(worst[name] <= SAME, f"differs by {worst[name]:.1e}")


if __name__ == "__main__":
    run(Trial("machine", "The same numbers on other threads and in other batches.", 2), cases)
