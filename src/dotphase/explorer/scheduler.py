"""Background work in small steps, so that a first answer never waits for it.

Solvers ask queries (`dotphase.theory.driver`). Every thread of the scheduler runs one query at a
time, always of the most pressing tasks: what is less pressing than a query under way waits, because
a query uses all cores. Between two queries tasks can be stopped, overtaken, or held while urgent
work is done in another thread.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dotphase.explorer.shared_jobs import Growing
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.driver import Stepper, Steps

#: Longest time that background work is held for urgent work, in seconds.
PATIENCE = 2.0
#: Seconds that a single step may take at most, generously.
LONGEST_STEP = 30.0
#: How much background threads give way to others.
NICENESS = 5


@dataclass(eq=False)
class Task:
    """A computation in the background; see `Scheduler.add`."""

    stepper: Stepper
    priority: int
    finish: Callable[[Any], None]
    owner: Growing
    number: int

    def step(self) -> bool:
        """Run one query; whether there is more to do."""
        try:
            if self.stepper.step():
                return True
            self.finish(self.stepper.result)
        except Exception as error:
            self.owner.fail(error)
        return False


class Scheduler:
    """Threads that share the tasks, one query at a time."""

    def __init__(self, threads: int = 2) -> None:
        self._tasks: list[Task] = []
        self._lock = threading.Condition()
        self._numbers = itertools.count()
        self._served: dict[int, int] = {}
        self._under_way: list[Task] = []
        self._urgent = 0
        self._closed = False
        work = in_double_precision(self._work)
        self._threads = [
            threading.Thread(target=work, name=f"dotphase-background-{index}", daemon=True)
            for index in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def add(
        self, steps: Steps[Any], priority: int, finish: Callable[[Any], None], owner: Growing
    ) -> None:
        """Put work in the queue.

        Parameters
        ----------
        steps : generator of queries
        priority : smaller is more pressing
        finish : called with the result, in the thread that finished it
        owner : told of an exception by its `fail`; its `stop` says that nobody wants the result
        """
        with self._lock:
            self._tasks.append(Task(Stepper(steps), priority, finish, owner, next(self._numbers)))
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
                task.owner.stop.set()
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
            more = False
            if task.owner.stop.is_set():
                task.stepper.close()
            else:
                more = task.step()
            with self._lock:
                self._under_way.remove(task)
                if more:
                    self._tasks.append(task)
                self._lock.notify_all()

    def _rank(self, task: Task) -> tuple[int, int, int]:
        """The most pressing first; among equals those that belong together take turns."""
        return task.priority, self._served.get(id(task.owner), -1), task.number

    def _most_pressing(self, task: Task) -> bool:
        """Whether nothing under way is more pressing."""
        return all(task.priority <= other.priority for other in self._under_way)

    def _take(self) -> Task | None:
        """The most pressing task, out of the list while a step of it is under way."""
        with self._lock:
            while not self._closed:
                if self._urgent:
                    # With a limit: a lost urgent thread must not stop everything for ever.
                    if not self._lock.wait(PATIENCE):
                        self._urgent = 0
                elif self._tasks and self._most_pressing(task := min(self._tasks, key=self._rank)):
                    self._tasks.remove(task)
                    self._under_way.append(task)
                    self._served = {
                        group: turn
                        for group, turn in self._served.items()
                        if any(id(one.owner) == group for one in self._tasks)
                    } | {id(task.owner): next(self._numbers)}
                    return task
                else:
                    self._lock.wait()
        return None
