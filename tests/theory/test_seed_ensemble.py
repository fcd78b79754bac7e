"""Several seeds, where one set of Gaussian points does not determine the result."""

from dataclasses import replace

import pytest

import dotphase as dp
from dotphase.theory.seed_ensemble import (
    is_undetermined,
    merge_replicas,
    nonexistence_is_certain,
)


@pytest.fixture(scope="module")
def on_branch(paper):
    return dp.solve(paper, 2.0, "semantic", log2_points=14)


@pytest.fixture(scope="module")
def off_branch(on_branch):
    return replace(on_branch, found="uninformed")


def test_near_its_end_a_branch_is_solved_with_other_seeds():
    solution = dp.solve(dp.positional_semantic(0.2), 1.6, "positional", log2_points=12)
    low, high = solution.ranges["m"]
    assert low < high
    assert solution.stderr["m"] > (high - low) / 5
    assert "NOT DETERMINED" in str(solution)


def test_a_precise_solution_is_determined(on_branch):
    assert not is_undetermined(on_branch)
    assert on_branch.ranges == {}


def test_the_majority_of_seeds_decides_whether_a_branch_exists(on_branch, off_branch):
    minority = merge_replicas(on_branch, [off_branch, off_branch, off_branch, on_branch])
    assert not minority.on_branch
    assert "found with 2 of 5 seeds" in minority.message
    majority = merge_replicas(off_branch, [on_branch, on_branch, off_branch, on_branch])
    assert majority.on_branch
    assert majority.ranges["theta"][0] == majority.ranges["theta"][1]


@pytest.mark.parametrize(
    ("missed", "certain"), [("x..", False), ("xx.", False), (".xx", False), ("xxx", True)]
)
def test_seeds_are_tried_until_a_majority_has_no_branch(on_branch, off_branch, missed, certain):
    first, *others = [off_branch if mark == "x" else on_branch for mark in missed]
    assert nonexistence_is_certain(first, others) is certain
    # The remaining seeds cannot change it.
    remaining = [on_branch] * (4 - len(others))
    assert merge_replicas(first, [*others, *remaining]).on_branch is not certain


def test_seeds_that_disagree_about_the_kind_leave_it_open(on_branch):
    saddle = replace(on_branch, stability=replace(on_branch.stability, kind="saddle"))
    verdict = merge_replicas(on_branch, [saddle, on_branch, on_branch, on_branch]).stability
    assert verdict.kind == "marginal"
    assert not verdict.trusted
