"""First looks at a point: within their time, from the nearest solution, on the right branch."""

import threading
import time

import pytest

from dotphase.errors import InvalidInput
from dotphase.explorer import solver as solver_module
from dotphase.explorer.point import Point
from dotphase.explorer.scheduler import Scheduler
from dotphase.explorer.solver import Solver

#: Seconds after which a test gives up.
PATIENCE = 20


@pytest.fixture
def solver():
    scheduler = Scheduler()
    solver = Solver(scheduler)
    yield solver
    scheduler.close()
    solver.close()


def test_a_first_look_has_both_branches_and_stored_from_the_nearest(solver, monkeypatch):
    monkeypatch.setattr(solver_module, "MAX_FIRST_LOOK", 60.0)
    point = Point(alpha=2.0)
    first = solver.first_look(point)
    for branch in ("semantic", "positional"):
        assert first[branch]["on_branch"] and first[branch]["found"] == branch
        assert first[branch]["stage"] == "first look"
    stored = solver._stored[point, "semantic"]
    nearest = solver._nearest(Point(alpha=2.1), point.model(), "semantic")
    assert nearest.theta[0, 0, 0] == pytest.approx(stored.theta[0, 0, 0] * 0.25)
    # Another student has nothing in common with it.
    assert solver._nearest(Point(student_rank=2), point.model(), "semantic") is None


def test_a_first_look_off_its_branch_is_no_result_and_no_start(solver, monkeypatch):
    monkeypatch.setattr(solver_module, "MAX_FIRST_LOOK", 60.0)
    point = Point(alpha=0.3)  # too few data for a semantic minimum
    semantic = solver.first_look(point)["semantic"]
    assert not semantic["on_branch"] and semantic["found"] != "semantic"
    assert (point, "semantic") not in solver._stored


def test_a_first_look_ends_with_its_time(solver, monkeypatch):
    monkeypatch.setattr(solver_module, "MAX_FIRST_LOOK", 0.0)
    assert solver.first_look(Point()) == {"semantic": None, "positional": None}
    assert not solver._stored


def test_a_first_look_holds_the_background(solver, monkeypatch):
    holds = threading.Event()

    def look(*_):
        if solver.scheduler._holds:
            holds.set()

    monkeypatch.setattr(solver, "_solve_first", look)
    solver.first_look(Point())
    assert holds.is_set() and not solver.scheduler._holds


def test_final_numbers_replace_the_first_look(solver, monkeypatch):
    monkeypatch.setattr(solver_module, "MAX_FIRST_LOOK", 60.0)
    monkeypatch.setattr(solver_module, "FINAL", solver_module.FIRST_LOOK)
    best = solver.best(Point(alpha=2.0), "window")
    limit = time.monotonic() + 60
    while not best["done"] and time.monotonic() < limit:
        time.sleep(0.05)
        best = solver.best(Point(alpha=2.0), "window")
    assert {numbers["stage"] for numbers in best["value"].values()} == {"final"}
    assert best["error"] is None and best["progress"] == pytest.approx(1)


def test_a_model_that_loops_is_refused_and_keeps_few_threads(solver, monkeypatch):
    end = threading.Event()
    monkeypatch.setattr(solver_module, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(solver, "_solve_first", lambda *_: end.wait(PATIENCE))
    try:
        for k in range(6):
            with pytest.raises(InvalidInput, match=r"longer than 0.05 s: .* may loop for ever"):
                solver.first_look(Point(alpha=1 + k))
        looking = [thread for thread in threading.enumerate() if "dotphase-first" in thread.name]
        assert len(looking) == solver_module.THREADS
    finally:
        end.set()
