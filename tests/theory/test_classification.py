"""The branch of a fixed point, from the overlaps that vanish."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import (
    CUSTOM,
    DETECTION_THRESHOLD,
    alignments,
    classify,
    matches_branch,
)


@pytest.mark.parametrize("branch", ["semantic", "positional", "uninformed", "mixed"])
def test_every_initialization_is_on_its_branch(paper, branch):
    assert classify(paper, BRANCHES[branch].initial_overlaps(paper)) == branch


def test_alignments_are_shares_of_their_largest_values(paper):
    overlaps, rho = BRANCHES["uninformed"].initial_overlaps(paper), float(paper.rho[0])
    aligned = overlaps._replace(theta=np.sqrt(overlaps.q * rho))
    assert alignments(paper, aligned) == {"theta": pytest.approx(1), "m": 0}
    m = np.sqrt(overlaps.q[:, :, 0]) * np.array([[1.0], [-1.0]])
    sizes = alignments(paper, overlaps._replace(m=m))
    assert sizes == {"theta": 0, "m": pytest.approx(np.sqrt(0.5))}


@pytest.mark.parametrize(("factor", "branch"), [(0.99, "uninformed"), (1.01, "semantic")])
def test_an_alignment_is_detected_above_the_threshold(paper, factor, branch):
    overlaps, rho = BRANCHES["uninformed"].initial_overlaps(paper), float(paper.rho[0])
    theta = factor * DETECTION_THRESHOLD * np.sqrt(overlaps.q * rho)
    assert classify(paper, overlaps._replace(theta=theta)) == branch


def test_a_branch_matches_itself_and_a_custom_request_any():
    for name in BRANCHES:
        assert matches_branch(CUSTOM, name)
        if BRANCHES[name].variant_of is not None:
            assert matches_branch(name, BRANCHES[name].variant_of)
            continue
        others = [other for other in BRANCHES if matches_branch(name, other)]
        assert [other for other in others if BRANCHES[other].variant_of is None] == [name]
    assert not matches_branch("absent", "positional")


def test_no_student_is_uninformed():
    model = dp.positional_semantic()
    overlaps = BRANCHES["semantic"].initial_overlaps(model)
    tiny = overlaps._replace(q=1e-12 * overlaps.q, theta=1e-9 * overlaps.theta)
    assert classify(model, tiny) == "uninformed"
