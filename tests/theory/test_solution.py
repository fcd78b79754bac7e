"""Solutions: printout, values by name, requested and classified branch."""

from dataclasses import replace

import pytest

import dotphase as dp


@pytest.fixture(scope="module")
def solution(paper):
    return dp.solve(paper, 2.0, "semantic", log2_points=12)


def test_a_solution_prints_its_error_bars_and_its_verdict(paper):
    text = str(dp.solve(paper, 2.0, "semantic", log2_points=13))
    for part in ("semantic branch at alpha = 2", "±", "training loss", "converged", "trusted"):
        assert part in text


def test_lost_branch_is_reported_not_returned(paper):
    solution = dp.solve(paper, 0.5, "semantic", log2_points=12)
    assert solution.found == "uninformed"
    assert not solution.on_branch
    assert not solution.stability.trusted
    assert "requested semantic" in str(solution)


def test_values_have_names(solution):
    assert solution.value("theta") == solution.norms["theta"]
    assert solution.value("train_loss") == solution.train_loss
    plain = solution.to_dict()
    assert plain["norms"] == solution.norms and plain["found"] == "semantic"
    assert not {"model", "samples", "loss_slope"} & set(plain)


def test_a_saddle_and_a_failure_are_no_minima(solution):
    assert solution.matches_branch and solution.on_branch and solution.is_minimum
    saddle = replace(solution, stability=replace(solution.stability, kind="saddle"))
    assert saddle.on_branch and not saddle.is_minimum
    failure = replace(solution, converged=False)
    assert failure.matches_branch and not failure.on_branch
    assert str(failure).startswith("NO RESULT for the semantic branch at alpha = 2")
    other = replace(solution, found="positional")
    assert not other.matches_branch and not other.on_branch
