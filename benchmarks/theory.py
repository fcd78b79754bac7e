"""The theory solver against the textbook method, and its cost against its sizes.

Run with `make bench`. Times are CPU times (all cores added up) of one process; what counts
are the ratios, measured in the same run. The solver is warm: compiled before it is timed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import dotphase as dp
from textbook import Textbook

ALPHA, OMEGA = 2.0, 0.3
START = (0.1, 0.0, 10.0, 0.13)
PARTS = ("q", "V", "theta", "train_loss", "test_error")


def cpu_time(function: Callable[[], object], repeats: int = 1) -> tuple[float, object]:
    """CPU seconds per call, and the last result."""
    begun = time.process_time()
    for _ in range(repeats):
        result = function()
    return (time.process_time() - begun) / repeats, result


def values(solution: dp.results.Solution) -> dict[str, float]:
    return {
        **solution.norms,
        "train_loss": solution.train_loss,
        "test_error": solution.test_error,
    }


def worst(found: dict[str, float], exact: dict[str, float]) -> float:
    return max(abs(found[name] / exact[name] - 1) for name in PARTS)


def against_textbook() -> dict[str, float]:
    """The semantic branch at alpha = 2, omega = .3, both ways."""
    model = dp.positional_semantic(OMEGA)
    exact = values(dp.solve(model, ALPHA, "semantic", rtol=3e-4, most=21))
    book = Textbook(ALPHA, OMEGA)
    book_seconds, found = cpu_time(lambda: book.solve(START))
    print(f"textbook, degree-7 rule: {book_seconds:.1f} s CPU, {book.minimisations} calls of BFGS,"
          f" {found['iterations']} iterations, worst error {worst(found, exact):.2%}")  # fmt: skip
    rows = {"textbook_seconds": book_seconds, "textbook_error": worst(found, exact)}
    for points in (12, 14, 16):
        seconds, solution = cpu_time(
            lambda points=points: dp.solve(model, ALPHA, "semantic", log2_points=points), repeats=5
        )
        error = worst(values(solution), exact)
        ratio = book_seconds / seconds
        print(f"dotphase, 2^{points} points: {seconds * 1e3:.0f} ms CPU, worst error {error:.2%},"
              f" textbook/dotphase = {ratio:.0f}"
              f" ({ratio / 4:.0f} if the textbook minimised once for all averages)")  # fmt: skip
        rows[f"seconds_{points}"] = seconds
        rows[f"error_{points}"] = error
        rows[f"ratio_{points}"] = ratio
    return rows


def three_tokens(length: int, rank: int) -> dp.Model:
    def attention(h):
        return jax.nn.softmax(h @ h.T, axis=-1)

    return dp.Model(
        teacher=attention, student=attention, length=length, student_rank=rank,
        positions=np.eye(length),
    )  # fmt: skip


def against_sizes() -> list[dict[str, float]]:
    """Wall time of a warm solve against points, length and rank."""
    cases = [(2, 1, points) for points in (12, 14, 16, 18)]
    cases += [(3, 1, 13), (4, 1, 13), (2, 2, 13)]
    rows = []
    for length, rank, points in cases:
        paper = length == 2 and rank == 1
        model = dp.positional_semantic(0.0) if paper else three_tokens(length, rank)
        dp.solve(model, ALPHA, "semantic", log2_points=points)
        begun = time.perf_counter()
        solution = dp.solve(model, ALPHA, "semantic", log2_points=points)
        seconds = time.perf_counter() - begun
        each = seconds / solution.iterations / 2**points
        print(f"L = {length}, rank {rank}, 2^{points} points: {seconds * 1e3:.0f} ms,"
              f" {solution.iterations} evaluations, {each * 1e9:.0f} ns a point")  # fmt: skip
        rows.append({"length": length, "rank": rank, "points": points, "seconds": seconds})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    arguments = parser.parse_args()
    numbers = {"textbook": against_textbook(), "sizes": against_sizes()}
    if arguments.out:
        arguments.out.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
