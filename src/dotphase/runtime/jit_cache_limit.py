"""Drop compiled functions before the process runs out of memory maps.

Every compiled function occupies memory maps, those of a model with functions of its own about 500.
Linux limits a process to `vm.max_map_count` of them, 65,530 by default; beyond it, the process
crashes inside the compiler. Near the limit the functions compiled for models are dropped first. If
others occupy the maps, all of JAX's caches in this process are cleared, also those of the host
program. Dropped functions are reloaded from the persistent cache
(`dotphase.runtime.compilation_cache`) or compiled again; numbers do not change.
"""

import gc
import threading
import time
from pathlib import Path
from typing import Any
from weakref import WeakSet

import jax

#: Fraction of `vm.max_map_count` above which functions are dropped.
MAX_MAP_FRACTION = 0.75
#: Seconds between two checks: to count 50,000 maps takes 30 ms, to fill a tenth of them seconds.
CHECK_INTERVAL = 1.0

_PROCESS_MAPS, _MAX_MAP_COUNT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")


class _State:
    """The functions compiled for models, and the time of the last check."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.functions: WeakSet[Any] = WeakSet()
        self.next_check = 0.0
        self.may_clear_all = True


_state = _State()


def track(function: Any) -> None:
    """Register a function whose compiled code is dropped first, by its method `drop`."""
    with _state.lock:
        _state.functions.add(function)


def allow_clearing(allowed: bool) -> None:
    """Allow or forbid clearing JAX's caches of the whole process."""
    _state.may_clear_all = allowed


def clear_if_near_limit() -> bool:
    """Drop compiled functions if the process is near the limit; return True if it did."""
    if time.monotonic() < _state.next_check:
        return False
    with _state.lock:
        if time.monotonic() < _state.next_check:
            return False
        _state.next_check = time.monotonic() + CHECK_INTERVAL
        if memory_map_fraction() < MAX_MAP_FRACTION:
            return False
        for function in _state.functions:
            function.drop()
        gc.collect()  # compiled code in reference cycles
        if _state.may_clear_all and memory_map_fraction() > MAX_MAP_FRACTION:
            jax.clear_caches()
        return True


def memory_map_fraction() -> float:
    """Return the fraction of the allowed memory maps in use; 0 on systems without a limit."""
    try:
        n_maps = _PROCESS_MAPS.read_bytes().count(b"\n")
        return n_maps / int(_MAX_MAP_COUNT.read_text())
    except (OSError, ValueError):
        return 0.0
