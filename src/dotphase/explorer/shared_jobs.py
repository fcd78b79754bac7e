"""Things that grow in the background while windows watch them.

A growing thing (a refined solution, a curve, a landscape) belongs to a key. Windows that show
the same point share it; a thing that no window watches any longer is stopped, and forgotten
unless it is complete. Shelves are bounded, so that a page left open for days stays small.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

#: Windows remembered; the one not heard of for longest is forgotten first.
WINDOWS = 64


class Growing:
    """Something computed in the background, piece by piece.

    Attributes
    ----------
    stop : set when nobody wants it any more
    value : what there is so far, or None
    progress : share that is done, from 0 to 1
    done : whether it is complete
    error : why it will never be, in words
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.value: Any = None
        self.progress = 0.0
        self.done = False
        self.error: str | None = None
        self.lock = threading.Lock()
        self._dropped: Callable[[], None] = lambda: None

    def fail(self, error: Exception) -> None:
        """Note why it will not be complete, and stop what belongs to it."""
        self.give_up(f"{type(error).__name__}: {error}")

    def give_up(self, why: str) -> None:
        """The same, with the reason in words."""
        self.error = why
        self.stop.set()

    def when_dropped(self, action: Callable[[], None]) -> None:
        """What to do when nobody wants it any more."""
        self._dropped = action
        if self.stop.is_set():
            action()

    def drop(self) -> None:
        """Nobody wants it any more."""
        self.stop.set()
        self._dropped()

    def to_dict(self) -> dict[str, Any]:
        """What a window is told."""
        return {name: getattr(self, name) for name in ("done", "progress", "error", "value")}


class Shelf:
    """Growing things by key, begun by a function of key and thing, and who watches them."""

    def __init__(self, capacity: int, begin: Callable[[Any, Growing], None]) -> None:
        self.capacity, self.begin = capacity, begin
        self._things: OrderedDict[Hashable, Growing] = OrderedDict()
        self._watched: OrderedDict[str, Hashable] = OrderedDict()
        self._lock = threading.Lock()

    def watch(self, key: Hashable, window: str) -> Growing:
        """The thing of a key, begun if it is new; the window leaves its last one."""
        with self._lock:
            self._watched[window] = key
            self._watched.move_to_end(window)
            while len(self._watched) > WINDOWS:
                self._watched.popitem(last=False)
            self._drop_unwatched()
            fresh = key not in self._things or self._things[key].stop.is_set()
            if fresh:
                self._things[key] = Growing()
            self._things.move_to_end(key)
            thing = self._things[key]
        if fresh:
            self.begin(key, thing)
        return thing

    def leave(self, window: str) -> None:
        """The window is closed."""
        with self._lock:
            self._watched.pop(window, None)
            self._drop_unwatched()

    def __len__(self) -> int:
        return len(self._things)

    def _drop_unwatched(self) -> None:
        watched = set(self._watched.values())
        for key, thing in list(self._things.items()):
            spare = len(self._things) > self.capacity
            if key not in watched and (not thing.done or spare):
                thing.drop()
                del self._things[key]
