"""Progress of long computations: one event type for every callback, one line, one logger."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dotphase.errors import InvalidInput

#: Logger of finished steps (INFO) and evaluations (DEBUG).
LOGGER = logging.getLogger("dotphase")
#: Seconds of work before an interactive session shows a line, and between two of its updates.
LINE_DELAY, REDRAW_SECONDS = 3.0, 0.2


@dataclass(frozen=True)
class ProgressEvent:
    """A finished step of a long computation.

    Attributes
    ----------
    stage : str
        Name of the computation, such as "training" or "semantic branch".
    done : int
        Number of finished steps.
    total : int or None
        Number of steps in all; None if it is not known in advance.
    result : object
        Result of the step, such as a `Solution` or a `Run`; None if it has none.

    Examples
    --------
    >>> events = []
    >>> _ = dp.curve(dp.positional_semantic(), [1.5, 2.0], log2_points=12, progress=events.append)
    >>> (events[-1].done, events[-1].total)
    (4, 4)
    """

    stage: str
    done: int
    total: int | None = None
    result: Any = None


#: Callback that receives every `ProgressEvent` of a computation.
ProgressCallback = Callable[[ProgressEvent], None]
#: A callback; True for a line on stderr; None for one in interactive sessions only.
Progress = ProgressCallback | bool | None


def report_nothing(event: ProgressEvent) -> None:
    """Ignore an event: the default callback."""


def reporter(progress: Progress) -> ProgressCallback:
    """Return the callback of a `progress` argument; it also logs every event."""
    if isinstance(progress, _Reporter):
        return progress
    if callable(progress):
        return _Reporter(progress)
    if progress not in (None, True, False):
        raise InvalidInput("progress", progress, "must be None, True, False or a function")
    is_interactive = hasattr(sys, "ps1")  # Python's prompt, IPython and notebooks
    if progress or (progress is None and is_interactive):
        return _Reporter(_Line(0.0 if progress else LINE_DELAY))
    return _Reporter(report_nothing)


class _Reporter:
    """A callback that logs the events, too."""

    def __init__(self, show: ProgressCallback) -> None:
        self._show = show

    def __call__(self, event: ProgressEvent) -> None:
        level = logging.DEBUG if event.total is None else logging.INFO
        LOGGER.log(level, "%s: %d of %s", event.stage, event.done, event.total or "?")
        self._show(event)


class _Line:
    """A line on stderr that each event replaces; empty at the end."""

    def __init__(self, delay: float) -> None:
        self._started = time.monotonic()
        self._next = self._started + delay
        self._width = 0

    def __call__(self, event: ProgressEvent) -> None:
        now, is_last = time.monotonic(), event.done == event.total
        if now < self._next and not (is_last and self._width):
            return
        total = "" if event.total is None else f" of {event.total}"
        text = f"{event.stage}: {event.done}{total}, {now - self._started:.0f} s"
        width, self._width = self._width, len(text)
        line = " " * width + "\r" if is_last else text.ljust(width)
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
        self._next = now + REDRAW_SECONDS


class ProgressCounter:
    """Counts the finished steps of a computation that several threads share, and reports them."""

    def __init__(self, stage: str, total: int | None, progress: Progress) -> None:
        self._stage, self._total = stage, total
        self._report = reporter(progress)
        self._lock = threading.Lock()
        self._done = 0

    def tick(self, result: Any = None) -> None:
        """Report one more finished step."""
        with self._lock:
            self._done += 1
            self._report(ProgressEvent(self._stage, self._done, self._total, result))

    def end(self, result: Any) -> None:
        """Report the result of a computation whose number of steps was not known."""
        self._report(ProgressEvent(self._stage, self._done, self._done, result))
