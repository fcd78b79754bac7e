"""Compiled code that is let go, before the system has no place for more of it.

Every compiled function takes some pieces of the address space, a model with functions of its own
about two thousand in all, and Linux gives a process 65,530: the process ends where JAX asks for
one more. So they are counted from time to time, and all compiled functions of the process are let
go when three quarters are taken. What is needed again is read from the folder that keeps it
(`dotphase.runtime.compilation_cache`), or compiled again.
"""

from __future__ import annotations

import threading
from pathlib import Path

import jax

#: Functions that are compiled between two counts: one has up to some hundred pieces.
BETWEEN = 32
#: Share of the pieces that may be taken.
SHARE = 0.75

_PIECES, _MOST = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")


class _Compiled:
    """How many functions this process has compiled since the last count."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def hear(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        """One more, if this is what JAX tells of."""
        if event == "/jax/core/compile/backend_compile_duration":
            self.count += 1


_compiled = _Compiled()
jax.monitoring.register_event_duration_secs_listener(_compiled.hear)


def clear_if_near_limit() -> bool:
    """Let compiled functions go if there are too many; whether they were."""
    if _compiled.count < BETWEEN:
        return False
    with _compiled.lock:
        if _compiled.count < BETWEEN:
            return False
        _compiled.count = 0
        if memory_map_fraction() < SHARE:
            return False
        jax.clear_caches()
        return True


def memory_map_fraction() -> float:
    """Share of the pieces of address space that is taken; 0 where the system does not say."""
    try:
        return _PIECES.read_bytes().count(b"\n") / int(_MOST.read_text())
    except (OSError, ValueError):
        return 0.0
