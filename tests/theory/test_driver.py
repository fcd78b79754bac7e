"""Runs of several solves, and the hook that is called before each evaluation."""

import threading

import pytest

import dotphase as dp
from dotphase.runtime import interrupt, threads
from dotphase.runtime.progress import ProgressEvent
from dotphase.theory.driver import before_evaluation, evaluation_hook, run_all
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solve import solve_one

SETTINGS = SolverSettings(log2_points=12)


class Ended(Exception):
    """Raised by a hook."""


@pytest.fixture(params=[1, 3])
def cores(request, monkeypatch):
    """One core, where the calling thread runs everything, and three."""
    monkeypatch.setattr(threads, "CORES", request.param)
    return request.param


def job(number, events=None):
    """A job that returns its number after its event, if there is one."""

    def run():
        before_evaluation()
        if events is not None:
            assert events[number].wait(10)
        return number

    return run


def test_results_and_progress_events_are_in_the_order_of_the_jobs(cores):
    received = []
    results = run_all([job(number) for number in (5, 1, 4, 2)], "numbers", received.append)
    assert results == [5, 1, 4, 2]
    assert received == [
        ProgressEvent("numbers", done, 4, number) for done, number in enumerate(results, 1)
    ]


def test_a_job_that_ends_first_does_not_change_the_order(monkeypatch):
    monkeypatch.setattr(threads, "CORES", 3)
    events = [threading.Event() for _ in range(3)]
    events[1].set()
    events[2].set()

    def last_but_first():
        events[0].set()
        return 2

    received = []
    assert run_all([job(0, events), job(1, events), last_but_first], "", received.append) == [
        0, 1, 2,
    ]  # fmt: skip
    assert [event.result for event in received] == [0, 1, 2]


def test_no_jobs_have_no_results(cores):
    assert run_all([], "nothing", pytest.fail) == []


def test_an_error_in_one_job_comes_out(cores):
    def broken():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_all([job(1), broken, job(2)], "numbers")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_other_jobs_at_their_next_evaluation(monkeypatch, error):
    monkeypatch.setattr(threads, "CORES", 2)
    running, ended = threading.Event(), threading.Event()

    def endless():
        try:
            while True:
                running.set()
                before_evaluation()
        finally:
            ended.set()

    def broken():
        assert running.wait(10)
        raise error

    with pytest.raises(error):
        run_all([broken, endless], "numbers")
    assert ended.wait(10)


def test_an_interruption_of_the_program_ends_a_solve(monkeypatch, paper):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupt, "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve_one(paper, 2.0, "semantic", SETTINGS)


def test_the_hook_is_called_before_each_evaluation_of_a_solve(paper):
    calls = []
    with evaluation_hook(lambda: calls.append(threading.get_ident())):
        solution = solve_one(paper, 2.0, "semantic", SETTINGS)
    # Every evaluation of the map, and the responses at the end.
    assert len(calls) >= solution.iterations + 1
    assert set(calls) == {threading.get_ident()}
    count = len(calls)
    assert dp.solve(paper, 2.0, "semantic", settings=SETTINGS).converged
    assert len(calls) == count


def test_the_hook_may_end_a_solve(paper):
    calls = []

    def hook():
        calls.append(None)
        if len(calls) == 3:
            raise Ended

    with pytest.raises(Ended), evaluation_hook(hook):
        solve_one(paper, 2.0, "semantic", SETTINGS)
    assert len(calls) == 3
    before_evaluation()  # The hook is gone.
    assert len(calls) == 3


def test_the_inner_of_two_hooks_is_called_and_the_outer_one_comes_back():
    calls = []
    with evaluation_hook(lambda: calls.append("outer")):
        with pytest.raises(Ended), evaluation_hook(lambda: calls.append("inner")):
            before_evaluation()
            raise Ended
        before_evaluation()
    before_evaluation()
    assert calls == ["inner", "outer"]


def test_a_hook_belongs_to_its_thread():
    calls = []
    with evaluation_hook(lambda: calls.append(None)):
        other = threading.Thread(target=before_evaluation)
        other.start()
        other.join()
    assert calls == []
