"""The survey of branches: the lowest minimum, roles, and which branches there can be."""

from types import SimpleNamespace

import dotphase as dp
from dotphase.theory.branch_survey import Survey, lowest_minimum, possible_branches, survey
from dotphase.theory.settings import SolverSettings


class Fake:
    """The attributes of a solution that the survey compares."""

    def __init__(self, branch, alpha, loss, *, minimum=True):
        self.branch, self.alpha, self.free_energy = branch, alpha, loss
        self.is_minimum = minimum


def test_the_lowest_minimum_is_no_saddle_and_no_copy_of_a_simpler_one():
    saddle = Fake("mixed", 1.0, 0.5, minimum=False)
    copy = Fake("mixed", 1.0, 0.9995)
    simple, other = Fake("positional", 1.0, 1.0), Fake("semantic", 1.0, 1.1)
    assert lowest_minimum([saddle, simple, other]) is simple
    assert lowest_minimum([copy, simple, other]) is simple
    clear = Fake("mixed", 1.0, 0.9)
    assert lowest_minimum([clear, simple, other]) is clear
    assert lowest_minimum([saddle]) is None


def test_students_of_rank_two_can_be_mixed_and_those_of_rank_one_not(paper):
    assert "mixed" not in possible_branches(paper)
    assert "mixed" in possible_branches(dp.positional_semantic(student_rank=2))


def test_roles_and_the_nearest_certain_minimum():
    def point(alpha, *, on_branch=True, kind="minimum"):
        is_minimum = on_branch and kind != "saddle"
        stability = SimpleNamespace(kind=kind)
        return SimpleNamespace(
            alpha=alpha, on_branch=on_branch, is_minimum=is_minimum, stability=stability
        )

    rows = {
        "semantic": [point(0.5, kind="saddle"), point(1.0, kind="marginal"), point(2.0)],
        "uninformed": [point(alpha, kind="saddle") for alpha in (0.5, 1.0, 2.0)],
        "positional": [point(alpha, on_branch=False) for alpha in (0.5, 1.0, 2.0)],
    }
    branches = Survey((0.5, 1.0, 2.0), rows)
    assert [branches.role(name) for name in rows] == ["a minimum", "a saddle", "not found"]
    assert branches.nearest_minimum("semantic", 0.1) == 2.0
    assert branches.nearest_minimum("uninformed", 0.1) is None


def test_a_branch_is_unsettled_from_its_last_minima_to_its_first_saddle_or_its_end():
    def row(*kinds):
        return [
            SimpleNamespace(
                alpha=2.0**k, on_branch=kind != "lost", stability=SimpleNamespace(kind=kind)
            )
            for k, kind in enumerate(kinds)
        ]

    minima = ["minimum"] * 3
    rows = {
        "positional": row(*minima, *minima),
        "semantic": row("lost", "lost", "saddle", *minima),
        "uninformed": row(*minima, "saddle", "saddle", "saddle"),
    }
    branches = Survey(tuple(2.0**k for k in range(6)), rows)
    assert branches.unsettled_range("positional", 4.0, 32.0) is None
    assert branches.unsettled_range("semantic", 32.0, 1.0) == (16.0, 1.0)
    # Few points may take the first saddle for a minimum: the range begins inside of it.
    assert branches.unsettled_range("uninformed", 4.0, 32.0) == (2.0, 16.0)


def test_the_grid_has_both_ends_and_no_close_neighbors(paper):
    branches = survey(paper, 1.24, 1.6, SolverSettings(log2_points=12))
    assert branches.alphas == (1.25, 1.5625, 1.6)
    assert set(branches.solved) == {"semantic", "positional", "uninformed"}
