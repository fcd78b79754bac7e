"""Background work: its order, its end, and how it gives way."""

import random
import sys
import threading
import time
from itertools import pairwise

import jax.numpy as jnp
import pytest

from dotphase.explorer import scheduler as scheduler_module
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import SharedJob
from dotphase.theory.driver import before_evaluation

#: Seconds after which a test gives up; far above what is needed.
PATIENCE = 20


@pytest.fixture
def single():
    """A scheduler that grants one evaluation at a time."""
    scheduler = Scheduler(slots=1)
    yield scheduler
    scheduler.close()


class Work:
    """A job of several evaluations that logs each of them."""

    def __init__(self, name, steps, log):
        self.name, self.steps, self.log = name, steps, log
        self.stop, self.over = threading.Event(), threading.Event()
        self.result = self.error = None

    def job(self):
        for step in range(self.steps):
            before_evaluation()
            self.evaluate(step)
        return self.name

    def evaluate(self, step):
        self.log.append(f"{self.name}{step}")

    def finish(self, result):
        self.result = result
        self.over.set()

    def fail(self, error):
        self.error = error
        self.over.set()

    def begin(self, scheduler, priority=0):
        scheduler.add(self.job, priority, self.finish, self)
        return self


class Gated(Work):
    """A job whose evaluations last until the test lets them end."""

    def __init__(self, name, steps, log):
        super().__init__(name, steps, log)
        self.entered, self.gate = threading.Semaphore(0), threading.Semaphore(0)

    def evaluate(self, step):
        self.entered.release()
        assert self.gate.acquire(timeout=PATIENCE)
        super().evaluate(step)

    def wait_until_evaluating(self):
        assert self.entered.acquire(timeout=PATIENCE)


def wait_until(condition):
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


def background_threads():
    return [thread for thread in threading.enumerate() if thread.name == "dotphase-background"]


def test_high_priority_overtakes_and_owners_take_turns(single):
    log = []
    slow, other, fast = Work("s", 3, log), Work("o", 3, log), Work("f", 2, log)
    with single.urgent():
        for work, priority in ((slow, 2), (other, 2), (fast, 0)):
            work.begin(single, priority)
    for work in (slow, other, fast):
        assert work.over.wait(PATIENCE)
    assert log == ["f0", "f1", "s0", "o0", "s1", "o1", "s2", "o2"]
    assert [work.result for work in (slow, other, fast)] == ["s", "o", "f"]


def test_an_owner_with_many_tasks_has_one_turn_at_a_time(single):
    log = []
    many, few = Work("m", 2, log), Work("f", 2, log)
    with single.urgent():
        for _ in range(3):
            many.begin(single)
        few.begin(single)
    wait_until(lambda: len(log) == 8)
    assert log[:5] == ["m0", "f0", "m1", "f1", "m0"]


def test_low_priority_waits_for_an_evaluation_of_higher_priority():
    scheduler, log = Scheduler(slots=2), []
    high, low = Gated("h", 1, log), Work("l", 2, log)
    try:
        high.begin(scheduler, 0).wait_until_evaluating()
        low.begin(scheduler, 1)
        assert not low.over.wait(0.2)  # although the second slot is free
        high.gate.release()
        assert low.over.wait(PATIENCE) and high.over.wait(PATIENCE)
    finally:
        high.gate.release()
        scheduler.close()
    assert log == ["h0", "l0", "l1"]


def test_stopped_work_is_dropped(single):
    log = []
    unwanted, wanted = Work("u", 1000, log), Work("w", 1, log)
    with single.urgent():
        unwanted.begin(single, 0)
        wanted.begin(single, 1)
        unwanted.stop.set()
    assert wanted.over.wait(PATIENCE)
    assert log == ["w0"] and unwanted.result is None and len(single) == 0


def test_a_task_that_is_stopped_while_it_waits_ends_without_another_evaluation(single):
    log = []
    unwanted, high = Gated("u", 1000, log), Gated("h", 2, log)
    unwanted.begin(single, 1).wait_until_evaluating()
    high.begin(single, 0)
    unwanted.gate.release()
    high.wait_until_evaluating()  # the unwanted task waits in its thread
    assert len(single) == 1 and len(background_threads()) == 2
    unwanted.stop.set()
    Work("late", 0, log).begin(single, 2)  # any change of the queue is enough
    wait_until(lambda: len(background_threads()) == 1)
    high.gate.release(2)
    assert high.over.wait(PATIENCE)
    assert log == ["u0", "h0", "h1"] and unwanted.result is None


def test_a_result_of_a_stopped_task_is_not_delivered(single):
    work, log = Gated("g", 1, []), []
    after = Work("a", 1, log)
    work.begin(single).wait_until_evaluating()
    work.stop.set()
    work.gate.release()
    after.begin(single)
    assert after.over.wait(PATIENCE)
    assert work.log == ["g0"] and work.result is None and work.error is None


def test_an_error_reaches_the_owner_and_other_tasks_go_on(single):
    log = []
    bad, good = Work("b", 1, log), Work("g", 1, log)

    def broken():
        before_evaluation()
        raise ArithmeticError("broken")

    bad.job = broken
    bad.begin(single, 0)
    good.begin(single, 1)
    assert bad.over.wait(PATIENCE) and good.over.wait(PATIENCE)
    assert isinstance(bad.error, ArithmeticError) and good.result == "g"


def test_an_interrupt_ends_a_task_silently(single, monkeypatch):
    printed, log = [], []
    monkeypatch.setattr(threading, "excepthook", printed.append)
    interrupted, good = Work("i", 1, log), Work("g", 1, log)

    def interrupt():
        raise KeyboardInterrupt

    interrupted.job = interrupt
    interrupted.begin(single, 0)
    good.begin(single, 1)
    assert good.over.wait(PATIENCE)
    wait_until(lambda: not background_threads())
    assert printed == [] and interrupted.error is None


def test_a_finished_task_may_add_another(single):
    log = []
    first, second = Work("f", 1, log), Work("s", 1, log)
    first.finish = lambda result: second.begin(single)
    first.begin(single)
    assert second.over.wait(PATIENCE)
    assert log == ["f0", "s0"]


def test_several_computations_finish_together_in_the_order_of_their_keys(single):
    owner, log, finished = SharedJob(), [], threading.Event()
    jobs = {"slow": Work("s", 2, log).job, "fast": Work("f", 1, log).job}
    results = []

    def finish(values):
        results.append(values)
        finished.set()

    with single.urgent():
        single.add_all(jobs, 0, finish, owner, lambda key, result: log.append((key, result)))
        assert results == []
    assert finished.wait(PATIENCE)
    assert log == ["s0", "s1", ("slow", "s"), "f0", ("fast", "f")]
    assert [list(values.items()) for values in results] == [[("slow", "s"), ("fast", "f")]]


def test_several_computations_do_not_finish_if_one_fails(single):
    owner, ended = SharedJob(), Work("e", 1, [])

    def broken():
        raise ArithmeticError("broken")

    with single.urgent():
        single.add_all({1: broken, 2: Work("w", 1, []).job}, 0, pytest.fail, owner)
        ended.begin(single, 1)
    assert ended.over.wait(PATIENCE)
    assert owner.error == "ArithmeticError: broken" and owner.stop.is_set()


def test_tasks_compute_in_double_precision(single):
    kinds = []

    def evaluate(step=0):
        kinds.append(jnp.ones(1).dtype)

    work = Work("d", 2, [])
    work.evaluate = evaluate
    plain = threading.Thread(target=evaluate)
    plain.start()
    plain.join()
    work.begin(single)
    assert work.over.wait(PATIENCE)
    assert kinds == ["float32", "float64", "float64"]


def test_holds_end_when_the_last_urgent_work_ends(single):
    log = []
    work = Work("w", 2, log)
    with single.urgent():
        with single.urgent():
            work.begin(single)
        assert not work.over.wait(0.1) and log == []
    assert work.over.wait(PATIENCE)
    with pytest.raises(ArithmeticError), single.urgent():
        raise ArithmeticError
    assert Work("a", 1, log).begin(single).over.wait(PATIENCE)


def test_urgent_work_that_hangs_does_not_hold_for_ever(single, monkeypatch):
    monkeypatch.setattr(scheduler_module, "MAX_HOLD", 0.1)
    with single.urgent():
        assert Work("w", 2, []).begin(single).over.wait(PATIENCE)


def test_waiting_costs_no_processor_time(single):
    works = [Gated(str(number), 2, []) for number in range(4)]
    works[0].begin(single, 3).wait_until_evaluating()
    for before, work in pairwise(works):  # each overtakes the one before
        work.begin(single, 3 - works.index(work))
        before.gate.release()
        work.wait_until_evaluating()
    assert len(background_threads()) == 4
    wall, processor = time.monotonic(), time.process_time()
    time.sleep(0.4)
    assert time.process_time() - processor < 0.5 * (time.monotonic() - wall)
    for work in works:
        work.gate.release(2)
    assert all(work.over.wait(PATIENCE) for work in works)


def test_close_ends_tasks_that_evaluate_that_wait_and_that_have_not_begun():
    scheduler, log = Scheduler(slots=1), []
    waiting, evaluating, fresh = Gated("w", 9, log), Gated("e", 9, log), Work("f", 1, log)
    waiting.begin(scheduler, 1).wait_until_evaluating()
    evaluating.begin(scheduler, 0)
    waiting.gate.release()
    evaluating.wait_until_evaluating()
    fresh.begin(scheduler, 2)
    closer = threading.Thread(target=scheduler.close)
    closer.start()
    closer.join(0.1)
    assert closer.is_alive()  # the evaluation under way is not cut off
    evaluating.gate.release()
    closer.join(PATIENCE)
    assert not closer.is_alive() and not background_threads() and len(scheduler) == 0
    late = Work("l", 1, log).begin(scheduler)
    assert not late.over.wait(0.1) and len(scheduler) == 0
    assert log == ["w0", "e0"] and late.stop.is_set()


def test_no_wake_up_is_lost_under_load():
    scheduler, rng = Scheduler(slots=2), random.Random(0)
    lock, evaluating, most = threading.Lock(), 0, 0

    def evaluate(step):
        nonlocal evaluating, most
        with lock:
            evaluating += 1
            most = max(most, evaluating)
        time.sleep(0.0002)
        with lock:
            evaluating -= 1

    works = []
    try:
        for number in range(150):
            work = Work(str(number), rng.randrange(6), [])
            work.evaluate = evaluate
            works.append(work.begin(scheduler, rng.randrange(4)))
            match rng.randrange(6):
                case 0:
                    rng.choice(works).stop.set()
                case 1:
                    with scheduler.urgent():
                        time.sleep(0.001)
        for work in works:
            assert work.stop.is_set() or work.over.wait(PATIENCE)
        wait_until(lambda: not background_threads())
        assert len(scheduler) == 0 and 1 <= most <= 2
        assert all(work.error is None for work in works)
    finally:
        scheduler.close()


def test_an_exit_of_a_model_reaches_the_owner(single):
    work = Work("e", 1, [])
    work.evaluate = lambda step: sys.exit("bye now")
    assert work.begin(single).over.wait(PATIENCE)
    assert isinstance(work.error, SystemExit)
    job = SharedJob()
    job.fail(work.error)
    assert job.error == "SystemExit: bye now"


def test_endless_evaluations_fail_and_free_their_slots(single, monkeypatch):
    monkeypatch.setattr(scheduler_module, "MAX_SECONDS", 0.0)
    monkeypatch.setattr(scheduler_module, "MAX_ENDLESS", 1)
    endless, good, refused = Gated("e", 1, []), Work("g", 1, []), Work("r", 1, [])
    try:
        endless.begin(single).wait_until_evaluating()
        good.begin(single)
        single.fail_endless()
        assert "may loop for ever" in endless.error and good.over.wait(PATIENCE)
        refused.fail = lambda error: (Work.fail(refused, error), refused.stop.set())
        refused.begin(single)
        assert "may loop for ever" in refused.error and not refused.log
    finally:
        endless.gate.release()
    wait_until(lambda: not background_threads())
    assert Work("n", 1, []).begin(single).over.wait(PATIENCE)
