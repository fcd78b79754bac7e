"""How long the first answer takes: in the very first process, in later ones, and after that.

    python benchmarks/first_call.py

Each row is a new Python process with an empty folder for compiled code, then another with what the
first has left there. Times are wall times of `import dotphase` and one solve, in seconds, and the
same over the best time of copying 64 MiB, which a slower machine does more slowly too. Then the
same for training and message passing, and for other values of alpha in the same process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

#: Tokens and rank of the student.
CASES = [(2, 1), (3, 1), (4, 1), (6, 1), (8, 1), (12, 1), (16, 1), (2, 2), (4, 2)]
PROGRAM = """
import json, sys, time
begin = time.perf_counter()
import dotphase as dp
length, rank = map(int, sys.argv[1:])
model = dp.positional_semantic_length(length).replace(student_rank=rank)
dp.solve(model, 1.9, "semantic")
first = time.perf_counter() - begin
begin = time.perf_counter()
dp.solve(model, 2.0, "semantic")
print(json.dumps([first, time.perf_counter() - begin]))
"""
#: Engine at finite d, and tokens.
ENGINES = [("train", 2), ("train", 3), ("amp", 2), ("amp", 3)]
#: Values of alpha: the first, another with data sets of the same size, and one with smaller ones.
ALPHAS = (2.0, 2.1, 1.5)
AT_FINITE_D = """
import json, sys, time
begin = time.perf_counter()
import dotphase as dp
name, length, *alphas = sys.argv[1:]
model = dp.positional_semantic_length(int(length))
times = []
for alpha in map(float, alphas):
    getattr(dp, name)(model, alpha, d=300, seeds=1)
    times.append(time.perf_counter() - begin)
    begin = time.perf_counter()
print(json.dumps(times))
"""


#: A branch that does not exist: three tokens, few data.
MISSING = """
import json, time
begin = time.perf_counter()
import dotphase as dp
model = dp.positional_semantic_length(3)
times = []
for alpha in (0.1, 0.05):
    assert not dp.solve(model, alpha, "semantic").on_branch
    times.append(time.perf_counter() - begin)
    begin = time.perf_counter()
print(json.dumps(times))
"""


def copying() -> float:
    """Best time of copying 64 MiB."""
    source = np.ones(2**23)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        source.copy()
        times.append(time.perf_counter() - begin)
    return min(times)


def _process(cache: str, program: str, *asked: object) -> list[float]:
    """Seconds that a new process took for one call after the other."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, asked)],
        env=os.environ | {"DOTPHASE_CACHE": cache}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    times: list[float] = json.loads(done.stdout)
    return times


def first_calls(cases: list[tuple[int, int]] = CASES) -> list[dict[str, float]]:
    """One row per length and rank."""
    rows = []
    for length, rank in cases:
        with tempfile.TemporaryDirectory() as cache:
            first, _ = _process(cache, PROGRAM, length, rank)
            later, second = _process(cache, PROGRAM, length, rank)
        print(f"L = {length}, rank {rank}: first {first:.1f} s, in later processes {later:.1f} s,"
              f" second solve {second:.2f} s")  # fmt: skip
        rows.append({"length": length, "rank": rank, "first": first, "later": later,
                     "second": second})  # fmt: skip
    return rows


def first_runs(engines: list[tuple[str, int]] = ENGINES) -> list[dict[str, Any]]:
    """One row per engine and length."""
    rows = []
    for engine, length in engines:
        with tempfile.TemporaryDirectory() as cache:
            first, same_size, other_size = _process(cache, AT_FINITE_D, engine, length, *ALPHAS)
            later = _process(cache, AT_FINITE_D, engine, length, ALPHAS[0])[0]
        print(f"{engine}, L = {length}: first {first:.1f} s, in later processes {later:.1f} s, "
              f"another alpha {same_size:.2f} s, with another size {other_size:.1f} s")  # fmt: skip
        rows.append({"engine": engine, "length": length, "first": first, "later": later,
                     "same_size": same_size, "other_size": other_size})  # fmt: skip
    return rows


def missing_branch() -> dict[str, float]:
    """How long it takes to be told that a branch is not there."""
    with tempfile.TemporaryDirectory() as cache:
        first, _ = _process(cache, MISSING)
        later, again = _process(cache, MISSING)
    print(f"missing branch: {first:.1f} s, in later processes {later:.1f} s, again {again:.1f} s")
    return {"first": first, "later": later, "second": again}


if __name__ == "__main__":
    print(f"copying 64 MiB: {copying() * 1e3:.1f} ms")
    first_calls()
    first_runs()
    missing_branch()
