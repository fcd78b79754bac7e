"""Random models with a time limit: where the theory is trusted, students at two d agree with it."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import Trial, require, run

import dotphase as dp

#: Seconds of a solve, and of it with everything around.
SECONDS, GRACE = 60, 240
#: Dimension, data sets, and allowed difference: Student's factor for four data sets times four
#: standard errors, and a share for terms of order 1/d^2.
D, SEEDS, ERRORS, SHARE = 150, 4, 12.0, 0.05


def random_model(trial: Trial) -> tuple[dp.Model, dict[str, Any]]:
    """A model of random length, rank, scales, positions and teacher; its numbers by name."""
    rng, length = trial.rng, int(trial.choose((2, 2, 3, 4)))
    p = rng.standard_normal((length, length)) / np.sqrt(length)
    numbers = {
        "length": length, "student_rank": int(trial.choose((1, 1, 2))),
        "ridge": float(10 ** rng.uniform(-2.5, -1)),
    }  # fmt: skip
    weight, fixed = float(rng.uniform(0, 0.6)), rng.dirichlet(np.ones(length), size=length)
    bias = float(trial.choose((0.0, 0.0, 0.5))) * np.abs(
        np.subtract.outer(*[np.arange(length)] * 2)
    )

    def teacher(h: Any) -> Any:
        return (1 - weight) * jax.nn.softmax(h @ h.T - bias, axis=-1) + weight * jnp.asarray(fixed)

    model = dp.Model(
        teacher, dp.softmax_attention, sigma=rng.uniform(0.3, 0.8, length), positions=p @ p.T,
        **numbers,
    )  # fmt: skip
    return model, numbers | {"weight": round(weight, 3), "bias": bool(bias.any())}


def compare(model: dp.Model, solution: Any) -> None:
    """Require that students at two d, extrapolated to the limit, agree with a trusted solution."""
    runs = [
        dp.train(model, solution.alpha, d, seeds=SEEDS, start=solution.branch, held_out=2)
        for d in (D, 2 * D)
    ]
    named = [dp.analysis.with_theory(one, log2_points=12, max_seconds=SECONDS) for one in runs]
    if any(one.mechanisms != {solution.branch: SEEDS} for one in named):
        return  # some left the branch, as they may at finite d
    small, large = runs
    for name in ("train_loss", "test_error"):
        expected = solution.value(name)
        error = np.hypot(
            np.hypot(2 * large.stderr[name], small.stderr[name]), solution.stderr[name]
        )
        limit = 2 * large.mean[name] - small.mean[name]
        text = f"{name} {limit:.6g} of students, {expected:.6g} of the theory, error {error:.2g}"
        require(abs(limit - expected) <= ERRORS * error + SHARE * expected, text)


def cases(trial: Trial) -> None:
    trusted = 0
    for _ in range(trial.cases):
        model, numbers = random_model(trial)
        alpha, branch = float(trial.rng.uniform(0.6, 3)), trial.choose(("semantic", "positional"))
        with trial.case((numbers, round(alpha, 3), branch)):
            started = time.monotonic()
            solution = dp.solve(model, alpha, branch, rtol=1e-2, max_seconds=SECONDS)
            seconds = time.monotonic() - started
            require(seconds < SECONDS + GRACE, f"took {seconds:.0f} s of {SECONDS}")
            require(solution.converged or not solution.stability.trusted, "trusted, not converged")
            if solution.is_minimum and solution.stability.trusted:
                trusted += 1
                compare(model, solution)
    trial.notes["trusted"] = trusted


if __name__ == "__main__":
    about = "Random models with a time limit, compared with students at two d."
    run(Trial("random models", about, 12), cases)
