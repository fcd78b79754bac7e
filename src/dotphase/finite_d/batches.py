"""Many runs in one compiled call: the number of runs, their memory, and `vmap` over them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from dotphase.config import validation
from dotphase.finite_d.datasets import BLOCK_SIZE
from dotphase.model import Model
from dotphase.runtime import memory_limit

T = TypeVar("T")

#: Number of sizes of data sets from one power of two to the next.
SIZES_PER_OCTAVE = 8
#: Smallest difference between two sizes of data sets.
MIN_STEP = 128
#: On an accelerator: fraction of the free memory for a batch.
MEMORY_FRACTION = 0.5
#: On an accelerator: maximum number of runs in a batch.
MAX_RUNS = 128
#: On a CPU: maximum size of a batch in bytes.
CPU_BATCH_BYTES = 2**25


def on_cpu() -> bool:
    """Return True if JAX computes on a CPU."""
    return jax.devices()[0].platform == "cpu"


def padded_size(n: int) -> int:
    """Return the size to which a data set of n sentences is padded.

    Compiled code holds for one size only, so that few sizes let other alphas use it again. Padding
    costs at most an eighth of the time (127 sentences for small data sets).
    """
    step = max(2 ** (n.bit_length() - 1) // SIZES_PER_OCTAVE, MIN_STEP)
    return -(-n // step) * step


def run_bytes(model: Model, n: int, d: int, dtype: np.dtype) -> int:
    """Return the memory that a run needs, most of it for its tokens."""
    size = max(padded_size(n), BLOCK_SIZE)
    return memory_limit.COPIES * size * model.length * d * dtype.itemsize


def check_run_fits(model: Model, n: int, d: int) -> None:
    """Refuse a data set that does not fit into memory."""
    bytes_per_run = run_bytes(model, n, d, np.dtype("float64"))
    memory_limit.check_batch(1, bytes_per_run, memory_limit.available_bytes(), d)


def choose_runs_per_batch(
    requested: int | None, bytes_per_run: int, count: int, d: int, *, cpu_limit: int = 1
) -> int:
    """Return how many of `count` runs to train at once: the requested number, or what fits.

    On a CPU at most `cpu_limit`, because runs compete for one memory bus and wait for the slowest
    of a batch; only small data sets gain from it. The error message names d.
    """
    count, free = max(count, 1), memory_limit.available_bytes()
    if requested is not None:
        requested = validation.integer("runs_per_batch", requested, at_least=1)
        requested = min(requested, count)
        memory_limit.check_batch(requested, bytes_per_run, free, d)
        return requested
    memory_limit.check_batch(1, bytes_per_run, free, d)
    if on_cpu():
        return int(np.clip(CPU_BATCH_BYTES // bytes_per_run, 1, min(cpu_limit, count)))
    return int(np.clip(MEMORY_FRACTION * free // bytes_per_run, 1, min(MAX_RUNS, count)))


def split_batches(items: Sequence[T], size: int) -> list[tuple[Sequence[T], list[T]]]:
    """Split items into batches; each comes with a copy padded to `size` by its last item.

    Batches of equal size share compiled code.
    """
    batches = [items[first : first + size] for first in range(0, len(items), size)]
    return [(batch, [*batch, *[batch[-1]] * (size - len(batch))]) for batch in batches]


def vmap_runs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply `jax.vmap` over the runs of a batch.

    A batch of one is compiled without the batch axis, which is quicker to compile and to run.
    """

    def call(*batched: Any) -> Any:
        if jax.tree.leaves(batched)[0].shape[0] > 1:
            return jax.vmap(function)(*batched)
        single = function(*jax.tree.map(lambda leaf: leaf[0], batched))
        return jax.tree.map(lambda leaf: leaf[None], single)

    return call
