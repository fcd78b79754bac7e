"""Available memory, and error messages if it does not suffice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax

from dotphase.errors import InvalidInput

#: Arrays of the size of the data, or of all Hessians, that exist at once.
COPIES = 4
SMALLER = "use a smaller d or alpha, or float32"


def available_bytes() -> int:
    """Return the bytes that can still be allocated on the device that JAX computes on."""
    device = jax.devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return min(_free(), _allowed())


def _free() -> int:
    """Return the free memory of the machine in bytes."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _allowed() -> int:
    """Return the memory limit of the container in bytes; 2^63 without a limit."""
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 2**63


def check_batch(batch: int, each: int, room: int, d: int) -> None:
    """Refuse a batch of runs of `each` bytes that does not fit into `room` bytes."""
    if batch * each <= room:
        return
    fits, free = room // each, f"and {format_size(room)} are free"
    if fits < 1:
        rule = f"one run needs about {format_size(each)} {free}: {SMALLER}"
        raise InvalidInput("d", d, rule)
    rule = f"needs about {format_size(batch * each)} {free}: use runs_per_batch {fits} or less"
    raise InvalidInput("runs_per_batch", batch, rule)


def check_storage(field: str, count: int, each: int) -> int:
    """Return `count`; `InvalidInput` if so many items of `each` bytes do not fit into memory."""
    room = available_bytes()
    if count * each > room:
        rule = f"would keep about {format_size(count * each)} and {format_size(room)} are free"
        raise InvalidInput(field, count, f"{rule}: use {max(room // each, 1)} or less")
    return count


@contextmanager
def explain_out_of_memory(batch: int) -> Iterator[None]:
    """Turn the runtime's out-of-memory error into one that names a batch size to use."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        text = str(error)
        if isinstance(error, jax.errors.JaxRuntimeError) and (
            "RESOURCE_EXHAUSTED" not in text and "ut of memory" not in text
        ):
            raise
        rule = f"ran out of memory: use runs_per_batch {batch // 2} or less"
        if batch == 1:
            rule = f"ran out of memory with a single run: {SMALLER}"
        raise InvalidInput("runs_per_batch", batch, rule) from error


def format_size(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**28 else f"{count / 2**20:.0f} MiB"
