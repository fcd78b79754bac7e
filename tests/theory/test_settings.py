"""Settings of the solver: checked when they are made, changed by keyword everywhere."""

import pytest

import dotphase as dp
from dotphase.theory.settings import DEFAULT, with_changes


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"rtol": 0}, "rtol"), ({"log2_points": 5}, "log2_points"), ({"seed": -1}, "seed"),
     ({"max_log2_points": 99}, "max_log2_points"), ({"log2_points": 14.0}, "log2_points"),
     ({"iteration": 0.5}, "iteration")],
)  # fmt: skip
def test_impossible_settings_are_refused(arguments, field):
    with pytest.raises(dp.InvalidInput, match=f"^{field} = "):
        dp.SolverSettings(**arguments)


def test_keywords_change_the_settings_given_or_the_default():
    given = dp.SolverSettings(rtol=0.1, seed=3)
    assert with_changes(given, DEFAULT, {"seed": 4}) == dp.SolverSettings(rtol=0.1, seed=4)
    assert with_changes(None, given, {}) == given


@pytest.mark.parametrize("function", [dp.solve, dp.analysis.landscape, dp.curve])
def test_unknown_keywords_say_what_is_known(paper, function):
    grid = ([0.1], [0.1]) if function is dp.analysis.landscape else ()
    alpha = [1.5] if function is dp.curve else 1.5
    with pytest.raises(
        TypeError, match="'tolerance'; settings are rtol, log2_points, max_log2_points"
    ):
        function(paper, alpha, *grid, tolerance=1e-3)
    with pytest.raises(TypeError, match="'points'; did you mean log2_points"):
        function(paper, alpha, *grid, points=12)


def test_settings_and_keywords_mean_the_same(paper):
    one = dp.solve(paper, 2.0, settings=dp.SolverSettings(log2_points=12, seed=3))
    two = dp.solve(paper, 2.0, log2_points=12, seed=3)
    assert one.train_loss == two.train_loss
    assert (one.log2_points, one.seed) == (12, 3)
