"""Training against the naive way, in one run: time per step, time to equal loss, memory.

    python benchmarks/training.py
    python benchmarks/training.py --naive-steps 200      # extrapolates to the published 5000

The naive way is what one writes first: the full (n, L, d) graph, differentiated by JAX, gradient
descent with the published step. It runs in float32, as published; ours runs in float64. The
memory bandwidth is that of reading the token matrix once, measured here.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import dotphase as dp
from dotphase.finite_d.datasets import Dataset
from dotphase.finite_d.loss import reduce, value_and_gradient

#: Published settings.
STEP, STEPS = 0.15, 5000


def naive_loss(weights: Any, x: Any, y: Any, p: Any, ridge: float) -> Any:
    """The training loss on the full graph, in three batched products."""
    d = x.shape[-1]
    z = x + p
    h = z @ weights / np.float32(np.sqrt(d))
    attention = jax.nn.softmax(h @ h.swapaxes(1, 2), axis=-1)
    return jnp.sum((y - attention @ z) ** 2) / (2 * d) + 0.5 * ridge * jnp.sum(weights**2)


@jax.jit
def naive_step(weights: Any, x: Any, y: Any, p: Any) -> Any:
    loss, gradient = jax.value_and_grad(naive_loss)(weights, x, y, p, 0.01)
    return weights - STEP * gradient, loss


def naive_problem(model: dp.Model, d: int, n: int) -> tuple[Any, ...]:
    data = dp.sample(model, d=d, n=n, key=0, dtype="float32")
    h = np.asarray(data.tokens @ data.teacher_weights) / np.sqrt(d)
    target = np.asarray(jax.jit(jax.vmap(model.teacher))(h), np.float32)
    return data.teacher_weights, data.tokens, target @ data.tokens, data.positions


def best_time(call: Callable[[], Any], repeats: int = 15) -> float:
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - began)
    return min(times)


def per_step(d: int, alpha: float) -> dict[str, float]:
    """One gradient: ours, the naive one, and the floor set by the memory."""
    model, n = dp.positional_semantic(), round(alpha * d)
    weights, x, y, p = naive_problem(model, d, n)
    naive = best_time(lambda: naive_step(weights, x, y, p))
    with jax.enable_x64(True):
        data = Dataset(*dp.sample(model, d=d, n=n, key=0))
        some = eqx.filter_jit(reduce)(model, data)
        gradient = eqx.filter_jit(value_and_gradient)
        ours = best_time(lambda: gradient(model, some, data.teacher_weights))
        total = jax.jit(jnp.sum)
        read = best_time(lambda: total(some.z))
    return {
        "naive_ms": 1e3 * naive,
        "ours_ms": 1e3 * ours,
        "speedup": naive / ours,
        "token_bytes": some.z.nbytes,
        "bandwidth_GBps": some.z.nbytes / read / 1e9,
        "floor_ms": 2e3 * read,
        "times_floor": ours / (2 * read),
    }


def naive_run(d: int, alpha: float, steps: int) -> dict[str, float]:
    """Gradient descent with the published settings."""
    weights, x, y, p = naive_problem(dp.positional_semantic(), d, round(alpha * d))
    jax.block_until_ready(naive_step(weights, x, y, p))
    began = time.perf_counter()
    for _ in range(steps):
        weights, loss = naive_step(weights, x, y, p)
    jax.block_until_ready(loss)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "steps": steps, "train_loss": float(loss) / d, "peak_MB": peak()}


def our_run(d: int, alpha: float) -> dict[str, Any]:
    """`train` to convergence with its test error: with compilation, then without."""
    model = dp.positional_semantic()
    began = time.perf_counter()
    dp.train(model, alpha, d, seeds=1)
    first = time.perf_counter() - began
    memory = peak()
    began = time.perf_counter()
    training = dp.train(model, alpha, d, seeds=1)
    seconds = time.perf_counter() - began
    run = training.runs[0]
    return {
        "seconds_with_compilation": first,
        "seconds": seconds,
        "train_loss": run.train_loss,
        "test_error": run.test_error,
        "gradient_norm_over_sqrt_d": run.gradient_norm / np.sqrt(d),
        "iterations": run.iterations,
        "converged": run.converged,
        "peak_MB": memory,
    }


def equal_loss(d: int, alpha: float, target_steps: int) -> dict[str, float]:
    """Steps and time that each needs to the loss gradient descent has after `target_steps`.

    Both on the same data: gradient descent on our loss takes the naive steps, so its loss
    after them is the naive one, and L-BFGS is stopped as soon as it is below.
    """
    model = dp.positional_semantic()
    descent = dp.train(model, alpha, d, seeds=1, optimizer="gd", steps=target_steps, held_out=2)
    target = descent.runs[0].train_loss
    low, high = 1, 60
    while low < high:
        middle = (low + high) // 2
        found = dp.train(model, alpha, d, seeds=1, steps=middle, held_out=2).runs[0].train_loss
        low, high = (low, middle) if found <= target else (middle + 1, high)
    began = time.perf_counter()
    training = dp.train(model, alpha, d, seeds=1, steps=low, held_out=2)
    seconds = time.perf_counter() - began
    return {"loss": target, "lbfgs_loss": training.runs[0].train_loss, "lbfgs_steps": low,
            "lbfgs_seconds": seconds, "gd_steps": target_steps}  # fmt: skip


def peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    # Not getrusage: its maximum includes the process that this one was forked from.
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def alone(part: str, *arguments: object) -> dict[str, Any]:
    """A part in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--part", part, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--alpha", type=float, default=1.5)
    parser.add_argument("--naive-steps", type=int, default=STEPS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", nargs="+", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        name, d, alpha, *rest = options.part
        parts: dict[str, Callable[..., dict[str, Any]]] = {"naive": naive_run, "ours": our_run}
        print(json.dumps(parts[name](int(d), float(alpha), *map(int, rest))))
        return
    step = per_step(options.d, 2.0)
    ours = alone("ours", options.d, options.alpha)
    naive = alone("naive", options.d, options.alpha, options.naive_steps)
    whole = naive["seconds"] * STEPS / naive["steps"]
    equal = equal_loss(options.d, options.alpha, STEPS)
    ratios = {
        "naive_5000_seconds": whole,
        "speedup": whole / ours["seconds"],
        "speedup_with_compilation": whole / ours["seconds_with_compilation"],
        "speedup_to_equal_loss": whole / equal["lbfgs_seconds"],
    }
    result = {"per_step_alpha_2": step, "ours": ours, "naive": naive, "equal_loss": equal, **ratios}
    if options.json:
        print(json.dumps(result))
        return
    print(f"one gradient at d = {options.d}, alpha = 2")
    print(f"  naive {step['naive_ms']:.2f} ms, ours {step['ours_ms']:.2f} ms: "
          f"{step['speedup']:.1f} times faster")  # fmt: skip
    print(f"  token matrix {step['token_bytes'] / 1e6:.0f} MB read at {step['bandwidth_GBps']:.1f} "
          f"GB/s; two passes {step['floor_ms']:.2f} ms; ours is {step['times_floor']:.2f} times "
          "that")  # fmt: skip
    print(f"one run at d = {options.d}, alpha = {options.alpha:g}, with its test errors")
    print(f"  naive {whole:.1f} s for {STEPS} steps ({naive['steps']} measured), "
          f"peak {naive['peak_MB']:.0f} MB")  # fmt: skip
    print(f"  ours {ours['seconds']:.3f} s ({ours['iterations']} steps, gradient/sqrt(d) "
          f"{ours['gradient_norm_over_sqrt_d']:.1e}), {ours['seconds_with_compilation']:.1f} s "
          f"with compilation, peak {ours['peak_MB']:.0f} MB")  # fmt: skip
    print(f"  {ratios['speedup']:.0f} times faster, "
          f"{ratios['speedup_with_compilation']:.0f} times with compilation")  # fmt: skip
    print(f"to the loss that gradient descent reaches in {STEPS} steps, {equal['loss']:.6f}")
    print(f"  {equal['lbfgs_steps']} steps of L-BFGS, {equal['lbfgs_seconds']:.3f} s: "
          f"{ratios['speedup_to_equal_loss']:.0f} times faster")  # fmt: skip


if __name__ == "__main__":
    main()
