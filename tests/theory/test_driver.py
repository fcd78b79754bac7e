"""Computations in steps: begun when asked, left when not wanted, the same in lanes."""

import threading
from types import SimpleNamespace

import pytest

from dotphase.theory.driver import Stepper, ask, run, run_alone


class Question(SimpleNamespace):
    """A query that is answered by its number."""

    group = "numbers"
    inside = 1

    def alone(self):
        return self.number

    @staticmethod
    def together(queries, width):
        return [query.number for query in queries]


def counting(upto, log=None):
    log = [] if log is None else log
    try:
        for number in range(upto):
            log.append((yield from ask(Question(number=number))))
    finally:
        log.append("over")
    return sum(log[:-1])


def test_a_stepper_begins_late_and_goes_one_query_at_a_time():
    log = []
    stepper = Stepper(counting(3, log))
    assert log == []
    assert stepper.step() and stepper.step()
    assert log == [0, 1] and not stepper.done
    assert not stepper.step()
    assert stepper.done and stepper.result == 3
    assert not stepper.step()


def test_a_stepper_can_be_left():
    log = []
    stepper = Stepper(counting(10, log))
    stepper.step()
    stepper.close()
    assert log == [0, "over"]


def test_stopped_work_has_no_result():
    stop, log = threading.Event(), []
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        run_alone(counting(10, log), stop)
    assert log == [0, "over"]


@pytest.mark.parametrize("lanes", [1, 3])
def test_results_come_in_order_whatever_runs_first(lanes):
    seen = []
    sizes = [5, 1, 0, 4, 2]
    results = run([counting(size) for size in sizes], lanes=lanes, progress=seen.append)
    assert results == [sum(range(size)) for size in sizes]
    assert sorted(seen) == sorted(results)


def test_an_error_in_one_computation_comes_out():
    def broken():
        yield from ask(Question(number=1))
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run([counting(3), broken()])
