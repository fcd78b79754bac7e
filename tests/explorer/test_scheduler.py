"""Background work: its order, its end, and how it gives way."""

import threading

import pytest

from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.shared_jobs import Growing, Shelf
from dotphase.theory.driver import before_evaluation


@pytest.fixture
def single():
    """One thread."""
    scheduler = Scheduler(slots=1)
    yield scheduler
    scheduler.close()


class Work:
    """A job of several steps that notes what was done when."""

    def __init__(self, name, steps, log):
        self.name, self.steps, self.log = name, steps, log
        self.stop, self.over = threading.Event(), threading.Event()
        self.result = self.error = None

    def job(self):
        for step in range(self.steps):
            before_evaluation()
            self.log.append(f"{self.name}{step}")
        return self.name

    def finish(self, result):
        self.result = result
        self.over.set()

    def fail(self, error):
        self.error = error
        self.over.set()

    def begin(self, scheduler, priority):
        scheduler.add(self.job, priority, self.finish, self)


def test_pressing_work_overtakes_and_equals_take_turns(single):
    log = []
    slow, other, fast = Work("s", 3, log), Work("o", 3, log), Work("f", 2, log)
    with single.urgent():
        for work, priority in ((slow, 2), (other, 2), (fast, 0)):
            work.begin(single, priority)
    for work in (slow, other, fast):
        assert work.over.wait(20)
    assert log == ["f0", "f1", "s0", "o0", "s1", "o1", "s2", "o2"]
    assert [work.result for work in (slow, other, fast)] == ["s", "o", "f"]


def test_what_is_less_pressing_waits_for_what_is_under_way():
    scheduler, log = Scheduler(slots=2), []
    pressing, other = Work("p", 2, log), Work("o", 2, log)
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert go_on.wait(20)
        log.append("p")

    def job():
        before_evaluation()
        slow()

    pressing.job = job
    try:
        pressing.begin(scheduler, 0)
        assert begun.wait(20)
        other.begin(scheduler, 1)
        assert not other.over.wait(0.2)  # the second thread is idle, and stays so
        go_on.set()
        assert other.over.wait(20) and pressing.over.wait(20)
    finally:
        go_on.set()
        scheduler.close()
    assert log == ["p", "o0", "o1"]


def test_stopped_work_is_dropped(single):
    log = []
    unwanted, wanted = Work("u", 1000, log), Work("w", 1, log)
    with single.urgent():
        unwanted.begin(single, 0)
        wanted.begin(single, 1)
        unwanted.stop.set()
    assert wanted.over.wait(20)
    assert log == ["w0"] and unwanted.result is None


def test_an_error_is_told_and_the_rest_goes_on(single):
    log = []
    bad, good = Work("b", 1, log), Work("g", 1, log)

    def broken():
        before_evaluation()
        raise ArithmeticError("broken")

    bad.job = broken
    bad.begin(single, 0)
    good.begin(single, 1)
    assert bad.over.wait(20) and good.over.wait(20)
    assert isinstance(bad.error, ArithmeticError) and good.result == "g"


@pytest.fixture
def begun():
    """What a shelf has begun."""
    return []


@pytest.fixture
def shelf(begun):
    return Shelf(3, lambda key, thing: begun.append(thing))


def test_a_shelf_stops_what_nobody_watches_and_stays_small(shelf, begun):
    first = shelf.watch("a", "window")
    assert shelf.watch("a", "other") is first and begun == [first]
    shelf.watch("b", "window")
    assert not first.stop.is_set()  # the other window still looks at it
    shelf.watch("c", "other")
    assert first.stop.is_set() and "a" not in shelf._things
    for number in range(50):
        growing = shelf.watch(number, "window")
        growing.done = True
    assert len(shelf) <= 5
    for number in range(500):
        shelf.watch("one", f"window{number}")
    assert len(shelf._watched) <= 64


def test_a_failed_thing_is_begun_anew(shelf, begun):
    first = shelf.watch("a", "window")
    first.fail(ArithmeticError("broken"))
    assert first.to_dict()["error"] == "ArithmeticError: broken"
    second = shelf.watch("a", "window")
    assert isinstance(second, Growing) and second is not first and len(begun) == 2
