"""The theory beside trained students."""

from dataclasses import replace

import numpy as np
import pytest

import dotphase as dp
from dotphase.experiments.comparison import with_theory
from dotphase.theory.stability import Stability

SADDLE = Stability(1.0, 0.0, False, "a saddle", "saddle", ("positional",))


@pytest.fixture(scope="module")
def solution(paper):
    return dp.solve(paper, 2.0, log2_points=12)


@pytest.fixture(scope="module")
def runs(paper):
    return dp.train(paper, alpha=2.0, d=40, seeds=2, start="semantic", steps=3)


def _with(monkeypatch, runs, *solutions):
    def solve(points, **options):
        names = [name for _, _, name in points]
        return [one for one in solutions if one.branch in names]

    monkeypatch.setattr(with_theory, "solve_many", solve)
    return dp.analysis.with_theory(runs)


def _student(runs, semantic, positional):
    """Runs of one student with these alignments."""
    run = replace(
        runs.runs[0], semantic_alignment=semantic, positional_alignment=positional, outcome="steps"
    )
    return replace(runs, runs=(run,))


def _minimum(solution, name, positional):
    """A minimum with the theta of a solution and an alignment with the positions."""
    q = float(solution.overlaps.q[0, 0, 0])
    m = np.sqrt(q) * positional / np.sqrt(1 - positional**2)
    overlaps = solution.overlaps._replace(m=solution.overlaps.m + m)
    return replace(solution, branch=name, found=name, overlaps=overlaps)


def test_students_are_compared_with_the_minimum_and_not_with_the_saddle(
    monkeypatch, runs, solution
):
    """Alignment .4 with the positions is below every threshold, but that of the only minimum."""
    student = _student(runs, 0.9, 0.4)
    assert student.mechanisms == {"semantic": 1}
    saddle, mixed = replace(solution, stability=SADDLE), _minimum(solution, "mixed", 0.42)
    predicted = _with(monkeypatch, student, saddle, mixed)
    assert predicted.mechanisms == {"mixed": 1} and predicted.runs[0].mechanism == "mixed"
    assert predicted.theory["mixed"]["m"] == pytest.approx(mixed.norms["m"])
    assert predicted.to_dict()["runs"][0]["mechanism"] == "mixed"


@pytest.mark.parametrize(
    "alignment, name", [(0.05, "semantic"), (0.3, "uncertain"), (0.5, "mixed")]
)
def test_students_between_two_minima_are_uncertain(monkeypatch, runs, solution, alignment, name):
    minima = solution, _minimum(solution, "mixed", 0.55)
    theta = with_theory._alignments(solution)[0]
    predicted = _with(monkeypatch, _student(runs, theta, alignment), *minima)
    assert predicted.mechanisms == {name: 1}
    assert (predicted.theory[name].values == {}) == (name == "uncertain")


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
    marginal = replace(solution.stability, trusted=False, kind="marginal", reason="near the end")
    predicted = _with(monkeypatch, runs, replace(solution, stability=marginal))
    note = "NOT TRUSTED, the theory of semantic students: marginal; near the end"
    assert note in str(predicted) and "theory at d = 40: " in str(predicted)
    plain = predicted.to_dict()["theory"]["semantic"]
    assert plain["note"].startswith("marginal") and plain["train_loss"] > 0


@pytest.mark.parametrize(
    "change, why",
    [
        ({"found": "positional"}, "no such branch at this alpha"),
        ({"converged": False, "message": "ran away"}, "ran away"),
        ({"stability": SADDLE}, "saddle (towards positional); a saddle"),
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
