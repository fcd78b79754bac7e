from __future__ import annotations

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.initialization import resolve_start
from dotphase.model.attention import untied_attention


def test_equal_queries_and_keys_are_the_tied_student(paper):
    h = np.random.default_rng(0).standard_normal((2, 1)).astype(np.float32)
    both = np.concatenate([h, h], axis=1)
    np.testing.assert_allclose(untied_attention(both), dp.softmax_attention(h), rtol=1e-6)


def test_starts_give_queries_and_keys_the_same_columns(paper):
    model = dp.untied(paper, rank=2)
    assert model.student_rank == 4
    teacher = np.ones((20, 1), np.float32)
    positions = np.ones((2, 20), np.float32)
    weights = resolve_start(model, "semantic")(jax.random.key(0), teacher, positions)
    np.testing.assert_array_equal(weights[:, :2], weights[:, 2:])
    np.testing.assert_array_equal(weights[:, 0], teacher[:, 0])


def test_bad_rank(paper):
    with pytest.raises(dp.InvalidInput, match="rank"):
        dp.untied(paper, rank=0)
