"""Order parameters: checks, norms and admissibility."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.branches import BRANCHES
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.overlaps import MIN_WEIGHT, admissible, is_zero, norms_of, shapes_of


@pytest.mark.parametrize(
    ("change", "field"),
    [({"q": np.zeros((2, 1, 1))}, "start.q"), ({"V": -np.ones((2, 1, 1))}, "start.V"),
     ({"m": np.zeros(2)}, "start.m"), ({"theta": np.full((2, 1, 1), np.nan)}, "start.theta"),
     ({"theta": np.full((2, 1, 1), 0.9)}, "start.theta")],
)  # fmt: skip
def test_impossible_starting_overlaps_are_refused(paper, change, field):
    start = BRANCHES["semantic"].initial_overlaps(paper)._replace(**change)
    with pytest.raises(ValueError, match=f"^{field} = "):
        dp.solve(paper, 1.5, start)


def test_overlaps_are_admissible_up_to_perfect_alignment(paper):
    overlaps, rho = BRANCHES["semantic"].initial_overlaps(paper), float(paper.rho[0])
    largest = np.sqrt(overlaps.q * rho)
    assert admissible(paper, overlaps._replace(theta=0.999 * largest))
    for impossible in ({"theta": 1.001 * largest}, {"q": -overlaps.q}, {"V": 0 * overlaps.V},
                       {"m": np.inf * np.ones((2, 1))}):  # fmt: skip
        assert not admissible(paper, overlaps._replace(**impossible))


def test_a_student_is_zero_below_the_smallest_weight(paper):
    overlaps, rho = BRANCHES["uninformed"].initial_overlaps(paper), float(paper.rho[0])
    for factor, expected in ((0.99, True), (1.01, False)):
        q = np.full_like(overlaps.q, factor * MIN_WEIGHT * rho)
        assert is_zero(overlaps._replace(q=q), paper) is expected


def test_norms_are_those_of_token_one_without_scalars(three_tokens):
    shapes = shapes_of(three_tokens)
    assert shapes == ((3, 2, 2), (3, 2), (3, 2, 2), (3, 2, 1))
    q, m, V, theta = (np.arange(1.0, 1 + np.prod(shape)).reshape(shape) for shape in shapes)
    norms = norms_of(BrokenOverlaps(q, 2 * q, m, V, theta, np.asarray(300.0)))
    assert set(norms) == {"q0", "q1", "m", "V", "theta"}
    assert norms["q1"] == pytest.approx(2 * np.sqrt(1 + 4 + 9 + 16))
    assert norms["theta"] == pytest.approx(np.hypot(1, 2))
