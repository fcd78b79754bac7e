"""A branch in alpha: both directions, steps on trial, distant approaches."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory import continuation as continuation_module
from dotphase.theory.continuation import BranchContinuation, continue_branch
from dotphase.theory.settings import SolverSettings

SETTINGS = SolverSettings(log2_points=12)


def test_continuation_agrees_with_separate_solves(paper):
    alphas = [1.3, 1.6]
    curve = dp.analysis.continue_in_alpha(paper, alphas, ("semantic", "positional"), log2_points=14)
    for branch, solutions in curve.items():
        assert [solution.alpha for solution in solutions] == alphas
        for solution in solutions:
            alone = dp.solve(paper, solution.alpha, branch, log2_points=14)
            np.testing.assert_allclose(solution.train_loss, alone.train_loss, rtol=2e-4)
            np.testing.assert_allclose(solution.norms["q"], alone.norms["q"], rtol=1e-2)


def test_a_branch_that_its_own_start_misses_is_reached_by_continuation(paper):
    solution = dp.solve(paper, 3.0, "positional", rtol=1e-2)
    assert solution.found == "positional" and solution.converged
    np.testing.assert_allclose(solution.norms["m"], 0.266, rtol=2e-2)


def test_positional_branch_is_followed_from_few_data_up(paper):
    """From the far end its own start lands on a weak look-alike with a tenth of m."""
    alphas = [1.9, 2.1, 2.3, 2.5]
    found = dp.analysis.continue_in_alpha(paper, alphas, ["positional"], log2_points=13)[
        "positional"
    ]
    assert all(solution.on_branch for solution in found)
    assert [solution.norms["m"] for solution in found] == pytest.approx([0.26] * 4, rel=0.05)


def test_a_saddle_from_afar_is_not_followed_for_a_minimum(monkeypatch):
    monkeypatch.setattr(BranchContinuation, "trial_step", lambda *args: pytest.fail("it walks"))
    model = dp.positional_semantic(omega=0.3, student_rank=2)
    assert dp.solve(model, 1.5, "semantic", log2_points=12).stability.kind == "saddle"


def test_the_positional_minimum_is_found_and_not_its_weak_look_alike(paper):
    solution = dp.solve(paper, 4.0, "positional", log2_points=13)
    assert solution.stability.kind == "minimum"
    assert solution.norms["m"] == pytest.approx(0.272, abs=0.005)


@pytest.mark.parametrize("branch", ["semantic", "positional"])
def test_both_directions_agree(paper, branch):
    alphas = [1.4, 1.6, 1.8]
    upwards, downwards = (
        BranchContinuation(paper, branch, SETTINGS),
        BranchContinuation(paper, branch, SETTINGS),
    )
    rising = [upwards.solve_at(alpha) for alpha in alphas]
    falling = [downwards.solve_at(alpha) for alpha in reversed(alphas)][::-1]
    for one, other in zip(rising, falling, strict=True):
        assert one.alpha == other.alpha and one.on_branch and other.on_branch
        for name in ("train_loss", "test_error"):
            difference = abs(one.value(name) - other.value(name))
            assert difference < one.stderr[name] / 3, name


def test_solutions_are_in_the_order_of_the_grid_and_progress_in_that_of_the_solves(paper):
    alphas, solved = [1.6, 1.4, 1.8], []
    solutions = continue_branch(paper, alphas, "positional", SETTINGS, solved.append)
    assert [solution.alpha for solution in solutions] == alphas
    # The positional branch is followed upwards, the semantic one downwards.
    assert [solution.alpha for solution in solved] == [1.4, 1.6, 1.8]
    solved.clear()
    continue_branch(paper, alphas, "semantic", SETTINGS, solved.append)
    assert [solution.alpha for solution in solved] == [1.8, 1.6, 1.4]


def test_a_lost_branch_is_searched_for_a_few_times_only(paper, monkeypatch):
    class Lost:
        def __init__(self, *arguments, **options): ...

        def solve_at(self, alpha):
            return SimpleNamespace(alpha=alpha, on_branch=1.5 < alpha < 3.5)

    monkeypatch.setattr(continuation_module, "BranchContinuation", Lost)
    follow = partial(continue_branch, paper, [4.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.1], "semantic")
    assert len(follow(SETTINGS)) == 7
    # The first miss precedes the branch and does not count.
    assert [one.alpha for one in follow(SETTINGS, max_misses=2)] == [4.0, 3.0, 2.0, 1.0, 0.5]


def test_other_settings_go_on_from_the_same_point(paper):
    coarse = BranchContinuation(paper, "semantic", SETTINGS)
    coarse.solve_at(1.8)
    fine = coarse.with_settings(replace(SETTINGS, log2_points=14, seed=5))
    solution = fine.solve_at(1.8)
    assert (solution.log2_points, solution.seed) == (14, 5)
    assert solution.on_branch and solution.iterations < 10
    assert coarse.solve_at(1.8).seed == SETTINGS.seed


def test_a_step_on_trial_does_not_move_the_continuation(paper):
    continuation = BranchContinuation(paper, "semantic", SETTINGS)
    continuation.solve_at(1.8)
    last = continuation.last
    trial, advanced = continuation.trial_step(1.7)
    assert continuation.last is last and advanced.last is not last
    again, _ = continuation.trial_step(1.7)
    assert again.train_loss == pytest.approx(trial.train_loss, rel=1e-5)
    # From a neighbor a solve takes a few evaluations.
    assert trial.on_branch and trial.iterations < 12


def test_a_lost_branch_is_found_again_from_its_own_initialization(paper):
    continuation = BranchContinuation(paper, "semantic", SETTINGS)
    assert not continuation.solve_at(0.4).on_branch
    assert continuation.last is None
    assert continuation.solve_at(1.8).on_branch
    assert continuation.last is not None
