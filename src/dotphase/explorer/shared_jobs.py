"""Background jobs that several windows of the page share.

A job (final numbers, a curve, a landscape) has a key. Windows that show the same point watch the
same job. A job that no window watches any longer is stopped, and removed unless it is complete. The
number of jobs is bounded, so that a page left open for days does not fill the memory.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from dotphase.errors import describe_error

#: Number of windows remembered; the one that was silent for longest is removed first.
MAX_WINDOWS = 64


class SharedJob:
    """A result that is computed in the background, piece by piece."""

    def __init__(self) -> None:
        self.stop = threading.Event()  #: set when no window needs the result
        self.value: Any = None  #: the result so far
        self.progress = 0.0  #: finished share, from 0 to 1
        self.done = False  #: True if the result is complete
        self.error: str | None = None  #: reason why the result will never be complete
        self.lock = threading.Lock()  #: guards `value`, `progress` and `done`
        self._on_cancel: Callable[[], None] = lambda: None

    def fail(self, reason: BaseException | str) -> None:
        """Store the reason of a failure and stop the tasks of this job."""
        self.error = reason if isinstance(reason, str) else describe_error(reason)
        self.stop.set()

    def on_cancel(self, action: Callable[[], None]) -> None:
        """Set the function to call when the job is canceled."""
        self._on_cancel = action
        if self.stop.is_set():
            action()

    def cancel(self) -> None:
        """Stop the tasks of this job."""
        self.stop.set()
        self._on_cancel()

    def to_dict(self) -> dict[str, Any]:
        """The state of the job, for the page."""
        return {name: getattr(self, name) for name in ("done", "progress", "error", "value")}


class SharedJobs:
    """Jobs by key, and the windows that watch them.

    `capacity` complete jobs stay without a window; `start` starts a new job from key and job.
    """

    def __init__(self, capacity: int, start: Callable[[Any, SharedJob], None]) -> None:
        self.capacity, self.start = capacity, start
        self._jobs: OrderedDict[Hashable, SharedJob] = OrderedDict()
        self._watched: OrderedDict[str, Hashable] = OrderedDict()
        self._lock = threading.Lock()

    def watch(self, key: Hashable, window: str) -> SharedJob:
        """Return the job of a key, started if it is new; the window's last job loses a watcher."""
        with self._lock:
            self._watched[window] = key
            self._watched.move_to_end(window)
            while len(self._watched) > MAX_WINDOWS:
                self._watched.popitem(last=False)
            self._cancel_unwatched()
            is_new = key not in self._jobs or self._jobs[key].stop.is_set()
            if is_new:
                self._jobs[key] = SharedJob()
            self._jobs.move_to_end(key)
            job = self._jobs[key]
        if is_new:
            self.start(key, job)
        return job

    def leave(self, window: str) -> None:
        """Remove a window that was closed."""
        with self._lock:
            self._watched.pop(window, None)
            self._cancel_unwatched()

    def __len__(self) -> int:
        return len(self._jobs)

    def _cancel_unwatched(self) -> None:
        watched = set(self._watched.values())
        for key, job in list(self._jobs.items()):
            is_full = len(self._jobs) > self.capacity
            if key not in watched and (not job.done or is_full):
                job.cancel()
                del self._jobs[key]
