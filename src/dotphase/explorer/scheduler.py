"""Background work with priorities, so that a first answer never waits for it.

Every task runs in a thread of its own, which waits before each evaluation of the averages
(`dotphase.theory.driver.evaluation_hook`) until the scheduler grants it the next one. Tasks of the
highest priority go first, few at a time, because an evaluation uses all cores. Between two
evaluations a task can be stopped, overtaken, or held while a window waits for a first answer.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from dotphase.explorer.shared_jobs import SharedJob
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.driver import evaluation_hook, run_quietly

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

#: Longest time that urgent work holds background work, in seconds.
MAX_HOLD = 2.0
#: Generous limit on the duration of one evaluation, in seconds.
MAX_EVALUATION = 30.0
#: Seconds after which an evaluation, and what is compiled for it, counts as endless.
MAX_SECONDS = 120.0
#: Largest number of endless evaluations, whose threads go on; after that no task is started.
MAX_ENDLESS = 4
#: Reason of the failure of endless tasks.
ENDLESS = "took longer than {:g} s: functions of the model may loop for ever"
#: Niceness of background threads.
NICENESS = 5


class _Stopped(BaseException):
    """Raised inside a task whose result is no longer wanted."""


@dataclass(eq=False)
class Task:
    """A computation in the background; see `Scheduler.add`."""

    job: Callable[[], Any]
    priority: int
    finish: Callable[[Any], None]
    owner: SharedJob
    number: int
    thread: threading.Thread | None = None
    granted: float = 0.0


class Scheduler:
    """Grants evaluations to background tasks, at most `slots` at a time.

    A task is waiting, evaluating, or neither: then it has ended or is about to end. Every change
    of state happens under the lock of one condition and notifies the threads that wait.
    """

    def __init__(self, slots: int = 2) -> None:
        self._slots = slots
        self._condition = threading.Condition()
        self._numbers = itertools.count()
        self._waiting: list[Task] = []
        self._evaluating: set[Task] = set()
        self._endless: set[Task] = set()
        self._last_turn: WeakKeyDictionary[SharedJob, int] = WeakKeyDictionary()
        self._holds: set[int] = set()
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def add(
        self, job: Callable[[], Any], priority: int, finish: Callable[[Any], None], owner: SharedJob
    ) -> None:
        """Queue a function that evaluates averages; the smallest priority goes first.

        `finish` receives the result, in the thread of the task. The owner receives an exception
        through `fail`; its event `stop` ends the task.
        """
        with self._condition:
            if self._closed:
                owner.stop.set()
            elif len(self._endless) >= MAX_ENDLESS:
                owner.fail(ENDLESS.format(MAX_SECONDS))
            self._waiting.append(Task(job, priority, finish, owner, next(self._numbers)))
            self._grant()

    def add_all(
        self,
        jobs: Mapping[K, Callable[[], R]],
        priority: int,
        finish: Callable[[dict[K, R]], None],
        owner: SharedJob,
        progress: Callable[[K, R], None] | None = None,
    ) -> None:
        """Queue several computations by key.

        `progress` receives each result with its key, and `finish` all of them, in the order of the
        keys. The other parameters are those of `add`.
        """
        results: dict[K, R] = {}

        def finish_one(key: K, result: R) -> None:
            if progress is not None:
                progress(key, result)
            with owner.lock:
                results[key] = result
                is_last = len(results) == len(jobs)
            # Without the lock, which every request for the owner's value takes.
            if is_last:
                finish({key: results[key] for key in jobs})

        for key, job in jobs.items():
            self.add(job, priority, partial(finish_one, key), owner)

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Hold all background work, at most `MAX_HOLD` seconds in case the urgent work hangs."""
        hold = next(self._numbers)
        timer = threading.Timer(MAX_HOLD, self._release, (hold,))
        timer.daemon = True
        with self._condition:
            self._holds.add(hold)
        try:
            timer.start()
            yield
        finally:
            timer.cancel()
            self._release(hold)

    def fail_endless(self) -> None:
        """Fail the tasks whose evaluation does not end, so that others take their slots."""
        with self._condition:
            now = time.monotonic()
            for task in [task for task in self._evaluating if now - task.granted > MAX_SECONDS]:
                self._evaluating.remove(task)
                self._endless.add(task)
                task.owner.fail(ENDLESS.format(MAX_SECONDS))
            self._grant()

    def close(self) -> None:
        """Finish the evaluations under way and end all tasks.

        Compiled code must not run when the interpreter ends.
        """
        with self._condition:
            self._closed = True
            for task in (*self._waiting, *self._evaluating):
                task.owner.stop.set()
            self._grant()
            threads = list(self._threads)
        for thread in threads:
            thread.join(MAX_EVALUATION)

    def __len__(self) -> int:
        """Number of tasks that wait for an evaluation."""
        with self._condition:
            return len(self._waiting)

    def _release(self, hold: int) -> None:
        with self._condition:
            self._holds.discard(hold)
            self._grant()

    def _grant(self) -> None:
        """Grant evaluations to the first tasks in order; called with the lock held.

        A task of lower priority than an evaluation under way waits for its end. A stopped task
        leaves the queue without an evaluation: its thread wakes up and ends.
        """
        self._waiting = [task for task in self._waiting if not task.owner.stop.is_set()]
        while self._waiting and not self._holds and len(self._evaluating) < self._slots:
            task = min(self._waiting, key=self._rank)
            if any(task.priority > other.priority for other in self._evaluating):
                break
            self._waiting.remove(task)
            self._evaluating.add(task)
            task.granted = time.monotonic()
            self._last_turn[task.owner] = next(self._numbers)
            if task.thread is None:
                task.thread = threading.Thread(
                    target=self._run, args=(task,), name="dotphase-background", daemon=True
                )
                self._threads.add(task.thread)
                task.thread.start()
        self._condition.notify_all()

    def _rank(self, task: Task) -> tuple[int, int, int]:
        """Order of the tasks: by priority, then in turns of their owners, then by age."""
        return task.priority, self._last_turn.get(task.owner, -1), task.number

    def _run(self, task: Task) -> None:
        """Run a task that was granted its first evaluation."""
        with suppress(OSError, AttributeError):
            # Linux has a niceness for each thread.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            self._compute(task)
        except (_Stopped, KeyboardInterrupt):
            pass  # An interrupted program ends the task without a traceback of its thread.
        except (Exception, SystemExit) as error:  # a user's model may call sys.exit
            task.owner.fail(error)
        finally:
            with self._condition:
                self._evaluating.discard(task)
                self._endless.discard(task)
                self._threads.discard(threading.current_thread())
                self._grant()

    @in_double_precision
    def _compute(self, task: Task) -> None:
        evaluations = itertools.count()

        def before_evaluation() -> None:
            if next(evaluations) > 0:
                self._wait_for_turn(task)
            if task.owner.stop.is_set():
                raise _Stopped

        with evaluation_hook(before_evaluation):
            result = run_quietly(task.job)
        # Nobody waits for the result of a stopped task.
        if not task.owner.stop.is_set():
            task.finish(result)

    def _wait_for_turn(self, task: Task) -> None:
        """End the last evaluation of a task and wait for the next one, or for its stop."""
        with self._condition:
            self._evaluating.discard(task)
            self._endless.discard(task)
            self._waiting.append(task)
            self._grant()
            self._condition.wait_for(lambda: task not in self._waiting)
