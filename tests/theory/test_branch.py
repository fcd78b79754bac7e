"""Initializations that the branches share."""

import numpy as np

import dotphase as dp
from dotphase.theory.branch import aligned_overlaps
from dotphase.theory.branches import BRANCHES
from dotphase.theory.overlaps import admissible


def test_mixed_columns_of_a_student_of_rank_two():
    start = BRANCHES["mixed"].initial_overlaps(dp.positional_semantic(student_rank=2))
    assert np.all(start.theta[:, 0] > 0) and np.all(start.theta[:, 1] == 0)
    assert np.all(start.m[:, 0] == 0) and np.all(start.m[:, 1] != 0)


def test_aligned_columns_are_admissible_and_differ_in_size(three_tokens):
    overlaps = aligned_overlaps(three_tokens, semantic=1, positional=1)
    assert admissible(three_tokens, overlaps)
    assert overlaps.theta[0, 0, 0] > 0 and overlaps.theta[0, 1, 0] == 0
    assert np.all(overlaps.m[:, 0] == 0) and np.abs(overlaps.m[:, 1]).max() == 0.25
    assert overlaps.q[0, 0, 0] > overlaps.q[0, 1, 1]
    rho = np.asarray(three_tokens.rho)[:, None, None]
    for part in (overlaps.q, overlaps.V, overlaps.theta):
        np.testing.assert_allclose(part / rho, np.broadcast_to(part[0] / rho[0], part.shape))


def test_without_positions_no_column_is_positional():
    model = dp.scalar_link(lambda h: h, lambda h: h)
    assert not np.any(aligned_overlaps(model, positional=0).m)
