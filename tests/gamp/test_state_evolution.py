from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
from dotphase.gamp.state_evolution import Paths, predict


def test_fields_have_the_requested_covariances(paper):
    paths = Paths(paper, np.random.default_rng(0))
    gram = np.array([[1.0, 0.6, 0.3], [0.6, 0.8, 0.5], [0.3, 0.5, 0.7]])
    fields = np.stack([paths.add(gram[: k + 1, k], mirrored=k % 2) for k in range(3)])
    measured = np.einsum("ilp,jlp->lij", fields, fields) / fields.shape[-1]
    for token in range(2):
        np.testing.assert_allclose(measured[token], 0.25 * gram, atol=0.02)


def test_a_direction_that_is_not_new_repeats_the_field(paper):
    paths = Paths(paper, np.random.default_rng(0))
    first = paths.add(np.array([2.0]), mirrored=1)
    second = paths.add(np.array([2.0, 2.0]), mirrored=0)
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize("damping", [0.3, 0.7])
def test_the_fixed_point_is_that_of_the_theory(paper, damping):
    """The path depends on the damping, the fixed point does not."""
    theory = dp.solve(paper, 2.0, "semantic", log2_points=14)
    gram = np.zeros((4, 4))
    gram[1:3, 1:3] = paper.positions
    gram[np.ix_([0, 3], [0, 3])] = 1.0
    V = 10.0 * np.ones((2, 1, 1))
    last = predict(paper, 2.0, gram, V, 40, damping)[-1]
    # 2^14 random paths: a standard error of about one per cent.
    assert last["q"] == pytest.approx(theory.norms["q"], rel=0.03)
    assert last["theta"] == pytest.approx(theory.norms["theta"], rel=0.03)
    assert last["m"] < 1e-3
