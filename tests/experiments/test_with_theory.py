"""The theory beside trained students."""

from dataclasses import replace

import pytest

import dotphase as dp
from dotphase.experiments.comparison import with_theory


@pytest.fixture(scope="module")
def solution(paper):
    return dp.solve(paper, 2.0, log2_points=12)


@pytest.fixture(scope="module")
def runs(paper):
    return dp.train(paper, alpha=2.0, d=40, seeds=2, start="semantic", steps=3)


def _with(monkeypatch, runs, solution):
    monkeypatch.setattr(with_theory, "solve_many", lambda points, **options: [solution])
    return dp.analysis.with_theory(runs)


def test_losses_are_those_at_d_and_overlaps_of_the_limit(monkeypatch, runs, solution):
    assert runs.mechanisms == {"semantic": 2}
    predicted = _with(monkeypatch, runs, solution)
    expected = predicted.theory["semantic"]
    assert expected.at_d == ("train_loss", "test_error") and expected.note == ""
    assert expected["train_loss"] == solution.at(40).train_loss != solution.train_loss
    assert expected["theta"] == solution.norms["theta"]
    text = str(predicted)
    assert text.count("theory at d = 40: ") == 2 and text.count("theory: ") == 4
    assert "NOT TRUSTED" not in text and "NO RESULT" not in text


def test_a_point_that_is_not_trusted_is_shown_with_the_reason(monkeypatch, runs, solution):
    saddle = replace(
        solution.stability, trusted=False, kind="saddle", towards=("positional",), reason="a saddle"
    )
    predicted = _with(monkeypatch, runs, replace(solution, stability=saddle))
    note = "NOT TRUSTED, the theory of semantic students: saddle (towards positional); a saddle"
    assert note in str(predicted) and "theory at d = 40: " in str(predicted)
    plain = predicted.to_dict()["theory"]["semantic"]
    assert plain["note"].startswith("saddle") and plain["train_loss"] > 0


@pytest.mark.parametrize(
    "change, why",
    [
        ({"found": "positional"}, "no such branch at this alpha"),
        ({"converged": False, "message": "ran away"}, "ran away"),
    ],
)
def test_a_branch_that_is_not_there_has_no_numbers_but_a_reason(
    monkeypatch, runs, solution, change, why
):
    predicted = _with(monkeypatch, runs, replace(solution, **change))
    assert predicted.theory["semantic"].values == {}
    assert f"NO RESULT of the theory of semantic students: {why}" in str(predicted)


def test_a_mechanism_without_a_branch_is_told(monkeypatch, runs, solution):
    monkeypatch.setattr(with_theory, "BRANCHES", {})
    assert "no branch of this name" in str(_with(monkeypatch, runs, replace(solution, branch="x")))


def test_models_without_known_terms_have_the_limit(monkeypatch, runs, solution):
    monkeypatch.setattr(with_theory, "is_known", lambda model: False)
    predicted = _with(monkeypatch, runs, solution)
    assert predicted.theory["semantic"].at_d == ()
    assert predicted.theory["semantic"]["train_loss"] == solution.train_loss
