"""Hostile functions and numbers as models: refused in one line, or a result that is no NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import Trial, require, run

import dotphase as dp

jax.config.update("jax_disable_most_optimizations", True)  # all are compiled once and run once

POSITIONS = {1: [[0.5]], 2: [[1.0, -1.0], [-1.0, 1.0]], 3: np.eye(3)}
#: What is done to the logits h h^T, or to the attention, by a function of a number.
LOGITS: tuple[Callable[[Any, float], Any], ...] = (
    lambda h, a: h @ h.T, lambda h, a: a * h @ h.T, lambda h, a: h @ h.T + a,
    lambda h, a: jnp.abs(h @ h.T) ** min(abs(a), 4), lambda h, a: jnp.sqrt(jnp.abs(h @ h.T)),
    lambda h, a: jnp.sign(h @ h.T) * a, lambda h, a: jnp.round(h @ h.T * a),
    lambda h, a: jnp.exp(jnp.minimum(h @ h.T, 50.0)), lambda h, a: jnp.zeros((len(h), len(h))),
    lambda h, a: jnp.where(h[0, 0] > a, h @ h.T, -h @ h.T),
    lambda h, a: h @ h.T / jnp.linalg.norm(h), lambda h, a: jnp.log(jnp.abs(h @ h.T)),
)  # fmt: skip
ENDS: tuple[Callable[[Any, Any, float], Any], ...] = (
    lambda s, h, a: jax.nn.softmax(s, axis=-1), lambda s, h, a: jax.nn.softmax(s, axis=-1),
    lambda s, h, a: s, lambda s, h, a: jnp.tanh(s), lambda s, h, a: s / (1 + jnp.abs(s)),
    lambda s, h, a: jnp.where(h[0, 0] > a, jnp.nan, jax.nn.softmax(s, axis=-1)),
    lambda s, h, a: jnp.where(jnp.abs(h[0, 0]) < 1e-3 * abs(a), jnp.nan, jax.nn.softmax(s)),
    lambda s, h, a: jnp.where(h[0, 0] > 3 * a, jnp.inf, jax.nn.softmax(s, axis=-1)),
    lambda s, h, a: 1 / (s - a), lambda s, h, a: jnp.exp(s), lambda s, h, a: jnp.exp(-jnp.exp(s)),
    lambda s, h, a: jnp.floor(s), lambda s, h, a: s[:, :1], lambda s, h, a: s.astype(int),
    lambda s, h, a: s + 1j, lambda s, h, a: None, lambda s, h, a: s.tolist(),
    lambda s, h, a: jnp.arcsin(s), lambda s, h, a: jnp.full_like(s, a),
)  # fmt: skip
NUMBERS = (0.5, 1.0, 2.5, -1.0, 0.0, 10.0, 1e3, 1e-3, 1e8, 1e-8, 1e30, 1e-30, 1e150, 1e300)
SIGMAS = (0.5,) * 6 + (1.0, 10.0, 1e3, 1e-3, 1e20, 1e-20, 1e50)
RIDGES = (0.01,) * 5 + (1.0, 1e-8, 1e8, 1e-300, 1e300)
ALPHAS = (1.0, 2.0, 2.0, 0.5, 10.0, 1e-3, 1e3, 1e-300, 1e300)


def function(trial: Trial) -> Callable[[Any], Any]:
    """A function of projected tokens."""
    logits, end, a = trial.choose(LOGITS), trial.choose(ENDS), float(trial.choose(NUMBERS))
    return lambda h: end(logits(h, a), h, a)


def finite(value: Any) -> bool:
    return value is None or math.isfinite(value)


def check(result: Any) -> None:
    """What is said to have converged has numbers."""
    for one in getattr(result, "runs", [result]):
        if getattr(one, "converged", False):
            numbers = [one.train_loss, one.test_error]
            require(all(map(finite, numbers)), f"converged with {numbers}: {one}")
        else:
            stability = getattr(one, "stability", None)
            reason = getattr(one, "reason", None) or getattr(one, "message", "") or str(one)
            require(bool(reason), "no reason")
            require(stability is None or not stability.trusted, "trusted, but not converged")
        reason = str(getattr(one, "reason", ""))
        require("met the tolerance" not in reason or one.converged, f"misleading: {reason}")
        require("(lr)" not in reason, f"misleading for this optimizer: {reason}")
    str(result)


def cases(trial: Trial) -> None:
    for _ in range(trial.cases):
        length = int(trial.choose((1, 2, 2, 2, 3)))
        own = trial.rng.random()
        parts: dict[str, Any] = {
            "teacher": function(trial) if own < 0.7 else dp.softmax_attention,
            "student": function(trial) if own > 0.4 else dp.softmax_attention,
            "length": length, "sigma": trial.choose(SIGMAS), "ridge": trial.choose(RIDGES),
            "positions": POSITIONS[length],
        }  # fmt: skip
        engine = trial.choose(("train", "train", "amp", "solve", "solve"))
        alpha = float(trial.choose(ALPHAS))
        start = str(trial.choose(("semantic", "positional", "random")))
        with trial.case((engine, alpha, start, length, parts["sigma"], parts["ridge"])):
            try:
                model = dp.Model(**parts)
                check(_compute(engine, model, alpha, start))
            except dp.InvalidInput as error:
                require("\n" not in str(error), "more than one line")


def _compute(engine: str, model: dp.Model, alpha: float, start: str) -> Any:
    if engine == "solve":
        branch = "uninformed" if start == "random" else start
        slow = dp.Iteration(max_steps=20)
        return dp.solve(model, alpha, branch, log2_points=10, iteration=slow)
    if engine == "amp":
        return dp.amp(model, alpha, 20, seeds=1, start=start, iterations=6, held_out=64)
    return dp.train(model, alpha, 20, seeds=1, start=start, steps=30, held_out=64)


if __name__ == "__main__":
    run(Trial("models", "Teachers, students and numbers that no theory is made for.", 150), cases)
