"""Events of JAX at the start and the end of a compilation."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Names of JAX's events.
START_EVENT = "/jax/compilation_cache/compile_requests_use_cache"
END_EVENT = "/jax/core/compile/backend_compile_duration"
#: Shortest compilation that is logged, in seconds.
MIN_LOGGED_SECONDS = 0.1

logger = logging.getLogger("dotphase")
_listeners: list[Callable[[str], None]] = []


@contextmanager
def compilation_listener(listener: Callable[[str], None]) -> Iterator[None]:
    """Call `listener` with "compiling" at the start of each compilation, with "" at its end."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def register() -> None:
    """Subscribe to the events of JAX, which is imported."""
    from jax import monitoring

    monitoring.register_event_listener(_on_start)
    monitoring.register_event_duration_secs_listener(_on_end)


def _on_start(event: str, **_: Any) -> None:
    if event == START_EVENT:
        for listener in _listeners:
            listener("compiling")


def _on_end(event: str, duration_secs: float, **_: Any) -> None:
    if event == END_EVENT:
        if duration_secs > MIN_LOGGED_SECONDS:
            logger.info("compiled, or read from the compilation cache, in %.1f s", duration_secs)
        for listener in _listeners:
            listener("")
