"""Throughput of a grid of trainings, and the speed of the device for comparison."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.finite_d.batches import MAX_RUNS, on_cpu
from dotphase.finite_d.loss import Form, Reduced, value_and_gradient
from dotphase.model import Model


@dataclass
class Cost:
    """Runs trained so far, and the bytes of their tokens that all steps had to read."""

    runs: int = 0
    useful_bytes: float = 0.0


class Throughput(NamedTuple):
    """Speed of the computation of a grid."""

    #: runs trained in this call, and its duration with compilation
    runs: int
    seconds: float
    useful_bytes: float  #: two passes over its own tokens for every step of every run
    #: single gradients, batched as in training; NaN if not measured
    evaluations_per_second: float = np.nan
    #: bytes per second that these read from the token matrices
    evaluation_bandwidth: float = np.nan
    #: bytes per second of a plain copy on the same device, reads and writes
    copy_bandwidth: float = np.nan


def speed_of_device(model: Model, d: int, n: int, runs: int | None) -> dict[str, float]:
    """Measure the last three attributes of a `Throughput`."""
    # Large enough to hide the launch of a kernel, on a GPU too.
    total = 2**28 if on_cpu() else 2**32
    runs = runs or int(np.clip(total // (n * model.length * d * 8), 1, MAX_RUNS))
    z = jnp.ones((runs, n, model.length, d))
    small = jnp.ones((runs, model.length, model.length, n))
    form = Form(small, small, jnp.ones((runs, n)))
    data = Reduced(z, form, jnp.ones((runs, n)))
    weights = jnp.full((runs, d, model.student_rank), 0.1)
    gradient = _best_time(_gradients, model, data, weights)
    copy = _best_time(jax.jit(lambda z: z + 1.0), z)
    return {
        "evaluations_per_second": runs / gradient,
        "evaluation_bandwidth": 2 * z.nbytes / gradient,
        "copy_bandwidth": 2 * z.nbytes / copy,
    }


def _best_time(function: Callable[..., Any], *arguments: Any) -> float:
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - started)
    return min(times)


@eqx.filter_jit
def _gradients(model: Model, data: Reduced, weights: Array) -> Any:
    return jax.vmap(lambda run, q: value_and_gradient(model, run, q))(data, weights)
