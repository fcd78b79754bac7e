"""Minimum or saddle: multipliers against one step, against the landscape, and their verdicts."""

from dataclasses import replace

import numpy as np
import pytest
from dotphase.theory.point_iteration import Memory, Search

import dotphase as dp
from dotphase.model.symmetry import unseen_turns
from dotphase.theory.continuation import Follower
from dotphase.theory.driver import run
from dotphase.theory.fixed_point_map import Free
from dotphase.theory.multipliers import multipliers
from dotphase.theory.seed_ensemble import combined, decided_against, needs_seeds
from dotphase.theory.settings import SolverSettings
from dotphase.theory.stability import Multipliers, told_undecided
from models import softmax


@pytest.fixture(scope="module")
def solved(paper):
    asked = {"semantic": 2.0, "positional": 2.0, "uninformed": 1.0}
    return {name: dp.solve(paper, alpha, name, log2_points=14) for name, alpha in asked.items()}


def test_the_minima_are_minima_and_the_uninformed_point_is_a_saddle(solved):
    assert solved["semantic"].stability.kind == "minimum"
    assert solved["positional"].stability.kind == "minimum"
    verdict = solved["uninformed"].stability
    assert verdict.kind == "saddle"
    assert verdict.described == "saddle (towards semantic, positional)"
    assert not verdict.trusted
    assert not solved["uninformed"].is_minimum
    assert solved["uninformed"].on_branch
    assert "saddle" in str(solved["uninformed"])


def test_json_has_kind_and_multipliers(solved):
    stability = solved["positional"].to_dict()["stability"]
    assert stability["kind"] == "minimum"
    assert set(stability["multipliers"]) == set(stability["multipliers_stderr"]) == {"theta", "m"}


def test_a_held_direction_is_multiplied_as_one_step_does(solved, paper):
    """A change of m on the semantic branch, where next to nothing jumps."""
    solution = solved["semantic"]
    problem = Free.started(paper, solution.alpha, solution.overlaps).opened
    x = problem.coordinates.pack(solution.overlaps)
    place = np.flatnonzero(problem.coordinates.part("m"))[0]
    moved = x.copy()
    moved[place] = 0.02 * problem.scale(x)[place]

    def step():
        search = Search(problem, SolverSettings(log2_points=14), Memory())
        return (yield from search.evaluate(moved, 14))

    there = run([step()])[0]
    ratio = there.image[place] / moved[place]
    verdict = solution.stability
    error = 3 * verdict.multipliers_stderr["m"] + 0.02 * abs(ratio)
    assert abs(verdict.multipliers["m"] - ratio) < error
    assert ratio < -1  # it oscillates, and is a minimum all the same


def test_the_curvature_of_the_landscape_says_the_same(solved, paper):
    """``df/dtheta = (t/R)(1 - M)/rho`` for a small theta at the positional point."""
    solution = solved["positional"]
    rho = float(paper.rho[0])
    theta = 0.2 * rho * np.sqrt(solution.norms["q"] / rho)
    surface = dp.analysis.landscape(paper, 2.0, [solution.norms["m"]], [theta], log2_points=14)
    response, t = surface.V[0, 0] / rho, theta / rho
    from_slope = 1 - surface.slope_theta[0, 0] * rho * response / t
    verdict = solution.stability
    assert abs(verdict.multipliers["theta"] - from_slope) < (
        3 * verdict.multipliers_stderr["theta"] + 0.06
    )
    assert surface.trusted.shape == surface.loss.shape
    assert 0 < surface.jump_weight[0, 0] < 1


def test_the_positional_minimum_is_found_and_not_its_weak_look_alike(paper):
    solution = dp.solve(paper, 4.0, "positional", log2_points=13)
    assert solution.stability.kind == "minimum"
    assert solution.norms["m"] == pytest.approx(0.272, abs=0.005)


@pytest.mark.parametrize(("alpha", "kind"), [(0.5, "minimum"), (1.4, "saddle")])
def test_three_tokens_lose_the_positional_minimum(alpha, kind):
    model = dp.positional_semantic_length(3, omega=0.3)
    verdict = dp.solve(model, alpha, "positional", log2_points=14).stability
    assert verdict.kind == kind
    assert verdict.towards == (("semantic",) if kind == "saddle" else ())
    assert 0 < verdict.multipliers_stderr["theta"] < 0.1


def test_a_saddle_from_afar_is_not_followed_for_a_minimum(monkeypatch):
    monkeypatch.setattr(Follower, "ahead", lambda *args: pytest.fail("it walks"))
    model = dp.positional_semantic(omega=0.3, student_rank=2)
    assert dp.solve(model, 1.5, "semantic", log2_points=12).stability.kind == "saddle"


def test_two_columns_are_saddles_unless_each_has_its_own_mechanism():
    model = dp.positional_semantic(omega=0.3, student_rank=2)
    kinds = {
        name: dp.solve(model, 1.5, name, log2_points=12).stability
        for name in ("semantic", "positional", "mixed")
    }
    assert kinds["semantic"].towards == ("positional",)
    assert kinds["positional"].towards == ("semantic",)
    # Turning the columns into each other changes nothing: that multiplier, one, is left out.
    assert kinds["mixed"].kind == "minimum"


def test_a_turn_of_columns_has_the_multiplier_one():
    model = dp.positional_semantic(omega=0.3, student_rank=2)
    start = dp.solve(model, 1.5, "mixed", log2_points=12).overlaps
    problem = Free.started(model, 1.5, start)
    x = problem.coordinates.pack(start)
    (turn,) = problem.coordinates.turns(x)
    assert np.any(turn[problem.held])
    np.testing.assert_array_equal(turn[~problem.held], 0)
    whole = np.repeat(np.outer(turn, turn)[None] / (turn @ turn), 8, axis=0)
    found = multipliers(problem, x, whole)
    assert max(found.value.values()) < 1e-9  # nothing is left beside the turn


def test_turns_are_seen_by_functions_that_tell_columns_apart():
    assert len(unseen_turns(softmax, 2, 3)) == 3
    assert unseen_turns(lambda h: softmax(h[:, :1]), 2, 2) == []


@pytest.mark.parametrize(
    ("value", "kind"), [(0.9, "minimum"), (0.97, "marginal"), (1.03, "marginal"), (1.1, "saddle")]
)
def test_a_kind_is_told_by_two_standard_errors(value, kind):
    found = Multipliers({"theta": value, "m": -5.0}, {"theta": 0.02, "m": 0.1})
    assert found.kind == kind
    assert Multipliers().kind == "unknown"


def test_next_to_its_end_a_branch_is_asked_with_other_seeds():
    solution = dp.solve(dp.positional_semantic(0.2), 1.6, "positional", log2_points=12)
    low, high = solution.ranges["m"]
    assert low < high
    assert solution.stderr["m"] > (high - low) / 5
    assert "NOT DETERMINED" in str(solution)


def test_a_point_that_is_determined_is_not(solved):
    assert not needs_seeds(solved["semantic"])
    assert solved["semantic"].ranges == {}


def test_the_majority_of_seeds_decides_whether_a_branch_exists(solved):
    there = solved["semantic"]
    lost = replace(there, found="uninformed")
    few = combined(there, [lost, lost, lost, there])
    assert not few.on_branch
    assert "found with 2 of 5 seeds" in few.message
    many = combined(lost, [there, there, lost, there])
    assert many.on_branch
    assert many.ranges["theta"][0] == many.ranges["theta"][1]


@pytest.mark.parametrize(
    ("asked", "enough"), [("x..", False), ("xx.", False), (".xx", False), ("xxx", True)]
)
def test_seeds_are_asked_until_most_have_no_branch(solved, asked, enough):
    there = solved["semantic"]
    lost = replace(there, found="uninformed")
    first, *others = [lost if one == "x" else there for one in asked]
    assert decided_against(first, others) is enough
    # Whoever is asked after that cannot change it.
    rest = [there] * (4 - len(others))
    assert combined(first, [*others, *rest]).on_branch is not enough


def test_seeds_that_disagree_about_the_kind_leave_it_open(solved):
    one = solved["semantic"]
    other = replace(one, stability=replace(one.stability, kind="saddle"))
    verdict = combined(one, [other, one, one, one]).stability
    assert verdict.kind == "marginal"
    assert not verdict.trusted


def test_an_unknown_error_is_said_in_words():
    found = Multipliers({"theta": 1.1, "m": np.nan}, {"theta": np.nan, "m": np.nan})
    told = told_undecided(found)
    assert "nan" not in told
    assert "theta by 1.100, with an unknown error" in told and "to m could not be measured" in told
