"""Background work in small steps, so that a first answer never waits for it.

Solvers ask queries (`dotphase.theory.steps`). The scheduler runs one query of one
task at a time, always of the most pressing task; between two queries tasks can be stopped,
overtaken, or held while urgent work is done in another thread.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dotphase._numerics.precision import in_double_precision
from dotphase.theory.steps import Stepper, Steps

#: Longest time that background work is held for urgent work, in seconds.
PATIENCE = 2.0
#: Seconds that a single step may take at most, generously.
LONGEST_STEP = 30.0
#: How much background threads give way to others.
NICENESS = 5


class Task:
    """A computation in the background.

    Parameters
    ----------
    steps : generator of queries
        What to run.
    priority : int
        Smaller is more pressing.
    finish : callable
        Called with the result, in the thread that finished it.
    fail : callable
        Called with the exception, if there is one.
    stop : threading.Event
        Set by anyone who no longer wants the result; several tasks may share one.
    """

    def __init__(
        self,
        steps: Steps[Any],
        priority: int,
        finish: Callable[[Any], None],
        fail: Callable[[Exception], None],
        stop: threading.Event,
    ) -> None:
        self.stepper, self.priority = Stepper(steps), priority
        self.finish, self.fail, self.stop = finish, fail, stop
        self.number = 0

    def step(self) -> bool:
        """Run one query; whether there is more to do."""
        try:
            if self.stepper.step():
                return True
            self.finish(self.stepper.result)
        except Exception as error:
            self.fail(error)
        return False


class Scheduler:
    """Threads that share the tasks, one query at a time."""

    def __init__(self, threads: int = 2) -> None:
        self._tasks: list[Task] = []
        self._lock = threading.Condition()
        self._numbers = itertools.count()
        self._served: dict[int, int] = {}
        self._urgent = 0
        self._closed = False
        work = in_double_precision(self._work)
        self._threads = [
            threading.Thread(target=work, name=f"dotphase-background-{index}", daemon=True)
            for index in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def add(self, task: Task) -> None:
        """Put a task in the queue."""
        with self._lock:
            task.number = next(self._numbers)
            self._tasks.append(task)
            self._lock.notify()

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """While this lasts no new step of background work begins."""
        with self._lock:
            self._urgent += 1
        try:
            yield
        finally:
            with self._lock:
                self._urgent = max(self._urgent - 1, 0)
                self._lock.notify_all()

    def close(self) -> None:
        """Finish the steps under way and begin no others.

        Compiled code must not be running when the interpreter ends.
        """
        with self._lock:
            self._closed = True
            for task in self._tasks:
                task.stop.set()
            self._lock.notify_all()
        for thread in self._threads:
            thread.join(LONGEST_STEP)

    def __len__(self) -> int:
        """Tasks that wait; those of which a step is under way are not counted."""
        with self._lock:
            return len(self._tasks)

    def _work(self) -> None:
        with suppress(OSError, AttributeError):
            # On Linux a thread can give way on its own; elsewhere it does so between steps only.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while (task := self._take()) is not None:
            if task.stop.is_set():
                task.stepper.close()
            elif task.step():
                with self._lock:
                    self._tasks.append(task)
                    self._lock.notify()

    def _rank(self, task: Task) -> tuple[int, int, int]:
        """The most pressing first; among equals those that belong together take turns."""
        return task.priority, self._served.get(id(task.stop), -1), task.number

    def _take(self) -> Task | None:
        """The most pressing task, out of the list while a step of it is under way."""
        with self._lock:
            while not self._closed:
                if self._urgent:
                    # With a limit: a lost urgent thread must not stop everything for ever.
                    if not self._lock.wait(PATIENCE):
                        self._urgent = 0
                elif self._tasks:
                    task = min(self._tasks, key=self._rank)
                    self._tasks.remove(task)
                    self._served = {
                        group: turn
                        for group, turn in self._served.items()
                        if any(id(one.stop) == group for one in self._tasks)
                    } | {id(task.stop): next(self._numbers)}
                    return task
                else:
                    self._lock.wait()
        return None
