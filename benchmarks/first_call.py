"""How long the first answer takes: in the very first process, in later ones, and after that.

    python benchmarks/first_call.py

Each row is a new Python process with an empty folder for compiled code, then another with what the
first has left there. Times are wall times of `import dotphase` and one solve, in seconds, and the
same over the best time of copying 64 MiB, which a slower machine does more slowly too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

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


def copying() -> float:
    """Best time of copying 64 MiB."""
    source = np.ones(2**23)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        source.copy()
        times.append(time.perf_counter() - begin)
    return min(times)


def _process(length: int, rank: int, cache: str) -> tuple[float, float]:
    """Seconds of the first and of the second solve in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(length), str(rank)],
        env=os.environ | {"DOTPHASE_CACHE": cache}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, second = json.loads(done.stdout)
    return first, second


def first_calls(cases: list[tuple[int, int]] = CASES) -> list[dict[str, float]]:
    """One row per length and rank."""
    rows = []
    for length, rank in cases:
        with tempfile.TemporaryDirectory() as cache:
            first, _ = _process(length, rank, cache)
            later, second = _process(length, rank, cache)
        print(f"L = {length}, rank {rank}: first {first:.1f} s, in later processes {later:.1f} s,"
              f" second solve {second:.2f} s")  # fmt: skip
        rows.append({"length": length, "rank": rank, "first": first, "later": later,
                     "second": second})  # fmt: skip
    return rows


if __name__ == "__main__":
    print(f"copying 64 MiB: {copying() * 1e3:.1f} ms")
    first_calls()
