"""How fast a grid is trained, and how fast the device could do it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.finite_d.batches import MAX_RUNS, on_cpu
from dotphase.finite_d.loss import Form, Reduced, value_and_gradient
from dotphase.model import Model


class Throughput(NamedTuple):
    """How fast the grid was computed.

    Attributes
    ----------
    runs, seconds : runs trained in this call, and the time it took, compilation included
    useful_bytes : two passes over its own tokens for every step of every run
    evaluations_per_second : single gradients, batched as in training
    evaluation_bandwidth : bytes per second that these read from the token matrices
    copy_bandwidth : bytes per second of a plain copy on the same device, reads and writes

    The last three are NaN where they were not asked for.
    """

    runs: int
    seconds: float
    useful_bytes: float
    evaluations_per_second: float = np.nan
    evaluation_bandwidth: float = np.nan
    copy_bandwidth: float = np.nan


def speed_of_device(model: Model, d: int, n: int, batch: int | None) -> dict[str, float]:
    """The last three of a `Throughput`."""
    # Enough to outlast the start of a kernel, on a GPU too.
    total = 2**28 if on_cpu() else 2**32
    lanes = batch or int(np.clip(total // (n * model.length * d * 8), 1, MAX_RUNS))
    z = jnp.ones((lanes, n, model.length, d))
    small = jnp.ones((lanes, model.length, model.length, n))
    form = Form(small, small, jnp.ones((lanes, n)))
    some = Reduced(z, form, jnp.ones((lanes, n)))
    weights = jnp.full((lanes, d, model.student_rank), 0.1)
    gradient = _best_time(_gradients, model, some, weights)
    copy = _best_time(jax.jit(lambda z: z + 1.0), z)
    return {
        "evaluations_per_second": lanes / gradient,
        "evaluation_bandwidth": 2 * z.nbytes / gradient,
        "copy_bandwidth": 2 * z.nbytes / copy,
    }


def _best_time(function: Callable[..., Any], *arguments: Any) -> float:
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


@eqx.filter_jit
def _gradients(model: Model, some: Reduced, weights: Array) -> Any:
    return jax.vmap(lambda each, q: value_and_gradient(model, each, q))(some, weights)
