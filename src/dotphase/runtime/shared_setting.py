"""Process-wide settings that hold while calls run, in any number of threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SharedSetting:
    """Change a process-wide setting for the first of overlapping calls, restore it after the last.

    Each call alone would restore the value that it found on entry. Of two overlapping calls, the
    one that ends last would then restore the value set by the other.
    `change` changes the setting and returns a function that restores it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._lock = threading.Lock()
        self._n_calls = 0
        self._restore: Callable[[], None] = _do_nothing

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the setting inside the block; restored also after an exception."""
        with self._lock:
            if self._n_calls == 0:
                self._restore = self._change()
            self._n_calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_calls -= 1
                if self._n_calls == 0:
                    self._restore()
                    self._restore = _do_nothing


def _do_nothing() -> None:
    pass
