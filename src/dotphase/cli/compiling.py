"""Knowing when JAX compiles: it announces that it begins, and tells how long it took."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Events of JAX around a compilation.
BEGINS = "/jax/compilation_cache/compile_requests_use_cache"
ENDS = "/jax/core/compile/backend_compile_duration"
#: Seconds from which on a compilation is worth a line of the log.
WORTH_A_LINE = 0.1

logger = logging.getLogger("dotphase")
_listeners: list[Callable[[str], None]] = []


@contextmanager
def told(listener: Callable[[str], None]) -> Iterator[None]:
    """Call `listener` with "compiling" when a compilation begins inside, with "" at its end."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def watch() -> None:
    """Listen to JAX; imports it."""
    from jax import monitoring

    monitoring.register_event_listener(_begun)
    monitoring.register_event_duration_secs_listener(_ended)


def _begun(event: str, **_: Any) -> None:
    if event == BEGINS:
        for listener in _listeners:
            listener("compiling")


def _ended(event: str, duration_secs: float, **_: Any) -> None:
    if event == ENDS:
        if duration_secs > WORTH_A_LINE:
            logger.info("compiled, or read what was compiled before, in %.1f s", duration_secs)
        for listener in _listeners:
            listener("")
