"""Available memory, and error messages if it does not suffice."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax

from dotphase.errors import InvalidInput

#: Number of arrays of the size of the data, or of all Hessians, that exist at the same time.
COPIES = 4
#: Advice if a single run does not fit.
ADVICE = "use a smaller d or alpha, or float32"


def available_bytes() -> int:
    """Return the bytes that can still be allocated on the device that JAX computes on."""
    device = jax.devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return min(_free_bytes(), _container_limit())


def _free_bytes() -> int:
    """Return the free memory of the machine in bytes."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _container_limit() -> int:
    """Return the memory limit of the container in bytes; 2^63 without a limit."""
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 2**63


def check_batch(n_runs: int, bytes_per_run: int, available: int, d: int) -> None:
    """Refuse a batch of runs at dimension `d` that needs more than the available bytes."""
    if n_runs * bytes_per_run <= available:
        return
    max_runs, free = available // bytes_per_run, f"and {format_size(available)} are free"
    if max_runs < 1:
        raise InvalidInput(
            "d", d, f"one run needs about {format_size(bytes_per_run)} {free}: {ADVICE}"
        )
    needed = format_size(n_runs * bytes_per_run)
    rule = f"needs about {needed} {free}: use runs_per_batch {max_runs} or less"
    raise InvalidInput("runs_per_batch", n_runs, rule)


def check_storage(field: str, count: int, bytes_per_item: int) -> int:
    """Return `count`; `InvalidInput` if that many items do not fit into memory."""
    available = available_bytes()
    if count * bytes_per_item > available:
        needed, free = format_size(count * bytes_per_item), format_size(available)
        rule = f"would keep about {needed} and {free} are free"
        raise InvalidInput(
            field, count, f"{rule}: use {max(available // bytes_per_item, 1)} or less"
        )
    return count


@contextmanager
def explain_out_of_memory(n_runs: int) -> Iterator[None]:
    """Turn the runtime's out-of-memory error into one that names a batch size to use."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        text = str(error)
        if isinstance(error, jax.errors.JaxRuntimeError) and (
            "RESOURCE_EXHAUSTED" not in text and "ut of memory" not in text
        ):
            raise
        rule = f"ran out of memory: use runs_per_batch {n_runs // 2} or less"
        if n_runs == 1:
            rule = f"ran out of memory with a single run: {ADVICE}"
        raise InvalidInput("runs_per_batch", n_runs, rule) from error


def format_size(count: int) -> str:
    """Format a number of bytes in MiB or GiB."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**28 else f"{count / 2**20:.0f} MiB"
