"""The theory solver against the textbook method, its floor, and its cost against its sizes.

Part of `make bench` (`benchmarks/page.py`). Times are CPU times (all cores added up) of one
process; what counts are the ratios, measured in the same run. The solver is warm: compiled before
it is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest.mock import patch

import jax
import numpy as np

import dotphase as dp
from dotphase.model.derivatives import loss_derivatives
from dotphase.numerics.proximal_map import vmap_points
from dotphase.theory import branch_processes
from textbook import Textbook

ALPHA, OMEGA = 2.0, 0.3
START = (0.1, 0.0, 10.0, 0.13)
#: log2 of the points of the comparison.
SIZES = (12, 14, 16)
#: Operations that an exponential stands for.
EXPONENTIAL = 20
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


def against_textbook() -> dict[str, dict[str, float]]:
    """The semantic branch at alpha = 2, omega = .3, both ways."""
    model = dp.positional_semantic(OMEGA)
    exact = values(dp.solve(model, ALPHA, "semantic", rtol=3e-4, max_log2_points=21))
    book = Textbook(ALPHA, OMEGA)
    book_seconds, found = cpu_time(lambda: book.solve(START))
    print(f"textbook, degree-7 rule: {book_seconds:.1f} s CPU, {book.minimisations} calls of BFGS,"
          f" {found['iterations']} iterations, worst error {worst(found, exact):.2%}")  # fmt: skip
    rows = {"textbook": {"seconds": book_seconds, "error": worst(found, exact)}}
    cases: dict[str, dict[str, int]] = {f"2^{points}": {"log2_points": points} for points in SIZES}
    for name, settings in (cases | {"default": {}}).items():
        dp.solve(model, ALPHA, "semantic", **settings)
        seconds, solution = cpu_time(
            lambda settings=settings: dp.solve(model, ALPHA, "semantic", **settings), repeats=20
        )
        row = {
            "seconds": seconds,
            "ratio": book_seconds / seconds,
            "error": worst(values(solution), exact),
            "evaluations": solution.iterations,
            "log2_points": solution.log2_points,
        }
        print(f"dotphase, {name}: {seconds * 1e3:.0f} ms CPU, worst error {row['error']:.2%}, "
              f"{solution.iterations} evaluations on up to 2^{solution.log2_points} points, "
              f"textbook/dotphase = {row['ratio']:.0f} ({row['ratio'] / 4:.0f} if the textbook"
              " minimised once for all averages)")  # fmt: skip
        rows[name] = row
    return rows


def floor(seconds: float, log2_points: int) -> dict[str, float]:
    """How far a solve is from the least that its last evaluation costs.

    The least: two Newton steps at each of the points that symmetry leaves, at the rate at which
    this core multiplies matrices. A step is the loss, its gradient and its Hessian, with
    exponentials counted as `EXPONENTIAL` operations.
    """
    model = dp.positional_semantic(OMEGA)
    with jax.enable_x64(True):
        derivatives = vmap_points(loss_derivatives(model))
        x, target = np.ones((2, 4096)), np.ones((2, 2, 4096))
        cost = jax.jit(derivatives).lower(x, target).compile().cost_analysis()
    each = (cost["flops"] + EXPONENTIAL * cost.get("transcendentals", 0.0)) / 4096
    matrix = np.random.default_rng(0).standard_normal((1000, 1000))
    matrix @ matrix
    product, _ = cpu_time(lambda: matrix @ matrix, repeats=5)
    peak = 2e9 / product
    least = 2 * each * 2.0 ** (log2_points - 1) / peak
    print(f"floor: {each:.0f} operations a point and step, {peak / 1e9:.0f} Gflop/s:"
          f" {least * 1e3:.2f} ms; a solve takes {seconds / least:.0f} times that")  # fmt: skip
    return {"operations": each, "peak": peak, "seconds": least, "ratio": seconds / least}


def attention_of(length: int, rank: int) -> dp.Model:
    def attention(h):
        return jax.nn.softmax(h @ h.T, axis=-1)

    return dp.Model(
        teacher=attention, student=attention, length=length, student_rank=rank,
        positions=np.eye(length),
    )  # fmt: skip


def against_sizes() -> list[dict[str, float]]:
    """CPU time of a warm solve against points, length and rank."""
    cases = [(2, 1, points) for points in (12, 14, 16, 18)]
    cases += [(length, 1, 13) for length in (3, 4, 6, 8, 12, 16)]
    cases += [(length, 2, 13) for length in (2, 4, 8, 16)]
    rows = []
    for length, rank, points in cases:
        paper = length == 2 and rank == 1
        model = dp.positional_semantic(0.0) if paper else attention_of(length, rank)
        dp.solve(model, ALPHA, "semantic", log2_points=points)
        seconds, solution = cpu_time(
            lambda model=model, points=points: dp.solve(
                model, ALPHA, "semantic", log2_points=points
            )
        )
        each = seconds / solution.iterations / 2**points
        print(f"L = {length}, rank {rank}, 2^{points} points: {seconds * 1e3:.0f} ms,"
              f" {solution.iterations} evaluations, {each * 1e9:.0f} ns a point")  # fmt: skip
        rows.append({"length": length, "rank": rank, "points": points, "seconds": seconds})
    return rows


def side_by_side() -> dict[str, float]:
    """Wall time of a diagram of 25 x 7 cells with its chains in threads, and in processes."""
    alphas, omegas = np.linspace(0.1, 2, 25), np.linspace(0, 0.5, 7)
    found = {}
    for name, fewest in (("threads", 10**9), ("processes", branch_processes.MIN_POINTS)):
        with patch.object(branch_processes, "MIN_POINTS", fewest):
            begun = time.perf_counter()
            dp.diagram(dp.positional_semantic, alphas, omegas)
            found[name] = time.perf_counter() - begun
    print(f"diagram of 25 x 7 cells: {found['threads']:.1f} s in threads,"
          f" {found['processes']:.1f} s in processes")  # fmt: skip
    return found
