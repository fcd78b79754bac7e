"""A solve whose time ends returns the best point so far and does not claim convergence."""

from __future__ import annotations

from itertools import count

import pytest

import dotphase as dp
from dotphase.theory import driver

MODEL = dp.positional_semantic()


def test_more_time_gives_a_better_point_that_is_never_called_converged(monkeypatch):
    residuals = []
    for limit in (0.5, 4.5, 9.5):
        ticks = count()  # a clock that moves whenever the solver looks at it
        monkeypatch.setattr(driver.time, "monotonic", lambda ticks=ticks: next(ticks))
        solution = dp.solve(MODEL, 2.0, rtol=0.01, max_seconds=limit)
        assert not solution.converged and not solution.on_branch
        assert solution.message.startswith("the time (max_seconds) ended before the tolerance was")
        assert "one step changes the overlaps by" in solution.message
        assert "raise max_seconds or lower log2_points" in solution.message
        assert solution.train_loss > 0 and solution.found == "semantic"
        residuals.append(solution.residual)
    assert residuals[0] > residuals[1] > residuals[2]


def test_each_solve_has_its_own_time_and_a_limit_that_is_not_reached_changes_nothing():
    settings = {"log2_points": 12, "rtol": 0.01}
    free = dp.solve(MODEL, 2.0, **settings)
    limited = dp.solve_many([(MODEL, 2.0, "semantic")] * 2, max_seconds=1e9, **settings)
    assert all(solution.converged for solution in limited)
    assert all(solution.train_loss == free.train_loss for solution in limited)
    curve = dp.curve(MODEL, [1.5, 2.0], branches=["semantic"], max_seconds=1e-9, **settings)
    assert not curve["converged"].any() and (curve["train_loss"] > 0).all()
    with pytest.raises(dp.InvalidInput, match="max_seconds"):
        dp.solve(MODEL, 2.0, max_seconds=0)


def test_a_solve_reports_its_evaluations():
    events = []
    solution = dp.solve(MODEL, 2.0, log2_points=12, progress=events.append)
    assert {event.stage for event in events} == {"solve"}
    assert [event.done for event in events[:-1]] == list(range(1, len(events)))
    assert events[-1].result is solution and events[-1].done == events[-1].total
    assert len(events) - 1 >= solution.iterations


def test_the_message_names_the_quantity_and_the_remedy():
    solution = dp.solve(MODEL, 2.0, rtol=1e-7, max_log2_points=14)
    ratios = {name: error / solution.value(name) for name, error in solution.stderr.items()
              if name != "m"}  # fmt: skip
    worst = max(ratios, key=ratios.get)
    assert f"the relative quadrature error of {worst}, {ratios[worst]:.1e}," in solution.message
    assert solution.message.endswith("raise max_log2_points or rtol")
