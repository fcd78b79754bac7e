"""Progress of long computations: one event type for every callback."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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


def report_nothing(event: ProgressEvent) -> None:
    """Ignore an event: the default callback."""


class ProgressCounter:
    """Counts the finished steps of a computation that several threads share, and reports them."""

    def __init__(self, stage: str, total: int | None, progress: ProgressCallback | None) -> None:
        self._stage, self._total = stage, total
        self._report = progress or report_nothing
        self._lock = threading.Lock()
        self._done = 0

    def finish(self, result: Any = None) -> None:
        """Report one more finished step."""
        with self._lock:
            self._done += 1
            self._report(ProgressEvent(self._stage, self._done, self._total, result))
