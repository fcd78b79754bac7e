"""Random models with a time limit: where the theory is trusted, students at two d agree with it."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import Trial, require, run

import dotphase as dp

#: Seconds of a solve, and of the call with everything around.
SECONDS, GRACE = 40, 120
#: Dimension, data sets, and allowed difference: Student's factor for four data sets times four
#: standard errors, and a share for terms of order 1/d^2.
D, SEEDS, ERRORS, SHARE = 120, 4, 12.0, 0.05


def random_model(trial: Trial) -> tuple[dp.Model, dict[str, Any]]:
    """A model whose student can match much of its teacher; its numbers by name.

    Both attend by softmax. The teacher adds a fixed matrix or a bias by distance, which the student
    can match with the positions alone.
    """
    rng, length = trial.rng, int(trial.choose((2, 2, 2, 3, 3, 4)))
    rank = int(trial.choose((1, 1, 1, 2))) if length < 4 else 1
    numbers = {"length": length, "student_rank": rank, "ridge": float(10 ** rng.uniform(-2, -1))}
    weight, fixed = float(rng.uniform(0, 0.5)), rng.dirichlet(np.ones(length), size=length)
    places = np.arange(length)
    bias = float(trial.choose((0.0, 0.0, 0.5))) * np.abs(np.subtract.outer(places, places))
    scale = float(trial.choose((1.0, 1.0, 0.7, 1.5)))

    def teacher(h: Any) -> Any:
        attention = jax.nn.softmax(scale * h @ h.T - bias, axis=-1)
        return (1 - weight) * attention + weight * jnp.asarray(fixed)

    student = trial.choose((dp.softmax_attention, lambda h: jax.nn.softmax(h @ h.T / 2, axis=-1)))
    positions = np.cos(2 * np.pi * np.subtract.outer(places, places) / (2 * length))
    model = dp.Model(
        teacher, student, sigma=rng.uniform(0.4, 0.8, length), positions=positions, **numbers
    )
    return model, numbers | {"weight": round(weight, 2), "bias": bool(bias.any()), "scale": scale}


def compare(solution: Any) -> str:
    """Verdict on a trusted solution from students at two d, extrapolated to the limit."""
    model, overlaps = solution.model, solution.overlaps
    small, large = [
        dp.train(model, solution.alpha, d, seeds=SEEDS, start=solution.branch, held_out=2)
        for d in (D, 2 * D)
    ]
    if any(run.diverged for run in (*small.runs, *large.runs)):
        return "students diverged"
    limits = {}
    for name in ("theta", "m", "train_loss", "test_error"):
        expected = solution.value(name)
        errors = 2 * large.stderr[name], small.stderr[name], solution.stderr[name]
        limits[name] = 2 * large.mean[name] - small.mean[name], expected, np.linalg.norm(errors)
    size = float(np.sqrt(np.trace(np.asarray(overlaps.q)[0])))
    # An overlap that vanishes by symmetry is of order 1/sqrt(d); far from the theory, it was left.
    if any(abs(large.mean[name] - limits[name][1]) > 0.3 * size for name in ("theta", "m")):
        return "students left the branch"
    for name in ("train_loss", "test_error"):
        limit, expected, error = limits[name]
        text = f"{name} {limit:.6g} of students, {expected:.6g} of the theory, error {error:.2g}"
        require(abs(limit - expected) <= ERRORS * error + SHARE * abs(expected), text)
    return "trusted, agrees"


def solved(model: dp.Model, alpha: float, branch: str) -> Any:
    """Solve within the time limit."""
    started = time.monotonic()
    solution = dp.solve(model, alpha, branch, rtol=1e-2, max_seconds=SECONDS)
    seconds = time.monotonic() - started
    require(seconds < SECONDS + GRACE, f"took {seconds:.0f} s of {SECONDS}")
    require(solution.converged or not solution.stability.trusted, "trusted, not converged")
    return solution


def verdict(model: dp.Model, alpha: float) -> str:
    """Verdict on the first branch that is a minimum."""
    solutions = []
    for branch in ("semantic", "positional"):
        solutions.append(solved(model, alpha, branch))
        if solutions[-1].is_minimum and solutions[-1].stability.trusted:
            return compare(solutions[-1])
    late = any("max_seconds" in solution.message for solution in solutions)
    return "over time" if late else "not trusted"


def cases(trial: Trial) -> None:
    counts: Counter[str] = Counter()
    for _ in range(trial.cases):
        model, numbers = random_model(trial)
        alpha = float(trial.rng.uniform(1.5, 4))
        with trial.case((numbers, round(alpha, 2))):
            result = "trusted, differs"
            try:
                result = verdict(model, alpha)
            finally:
                counts[result] += 1
    trial.notes.update(counts)


if __name__ == "__main__":
    about = "Random models with a time limit, compared with students at two d."
    run(Trial("random models", about, 12), cases)
