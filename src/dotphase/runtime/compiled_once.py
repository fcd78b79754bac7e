"""Functions that are compiled once, by one thread, possibly ahead of their first call."""

import threading
from collections.abc import Callable
from typing import Any

import jax

from dotphase.runtime import jit_cache_limit
from dotphase.runtime.threads import thread_pool


class CompiledOnce:
    """A jitted function of arrays that only one thread compiles; the others wait for it.

    `equinox.filter_jit` would accept the model itself and, with JAX 0.10, is compiled once as well.
    But it takes the model apart at every call, which costs 0.1 ms of the 0.5 ms of a small call.
    `untouched` is True until the first call or `prepare`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function: Any = jax.jit(function)
        self._lock = threading.Lock()
        self._ready = False
        self.untouched = True
        jit_cache_limit.track(self)

    def prepare(self, *args: Any) -> None:
        """Compile the function for such arguments in another thread."""
        self.untouched = False
        thread_pool().submit(self, *args)

    def drop(self) -> None:
        """Drop the compiled code; the next call compiles again."""
        self._ready = False
        self._function.clear_cache()

    def __call__(self, *args: Any) -> Any:
        if self._ready:
            return self._function(*args)
        self.untouched = False
        jit_cache_limit.clear_if_near_limit()
        with self._lock:
            result = self._function(*args)
            self._ready = True
        return result
