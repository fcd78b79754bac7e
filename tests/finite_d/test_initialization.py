"""Starts by name or function; objections to models."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.initialization import resolve_start


def test_a_scale_scales_the_start(paper):
    arguments = jax.random.key(0), np.zeros((30, 1)), np.zeros((2, 30))
    small, large = (np.asarray(resolve_start(paper, "random", s)(*arguments)) for s in (0.2, 1.0))
    np.testing.assert_allclose(small, 0.2 * large)
    default = np.asarray(resolve_start(paper, "random")(*arguments))
    np.testing.assert_allclose(default, 0.1 * large)
    with pytest.raises(dp.InvalidInput, match="scale"):
        resolve_start(paper, "random", 0.0)
    with pytest.raises(dp.InvalidInput, match="scale"):
        dp.train(paper, 1.0, 20, seeds=1, start=lambda *a: a[1], scale=0.3)


def test_a_start_objects_to_unsuitable_models(paper):
    without_positions = paper.replace(positions=np.zeros((2, 2)))
    with pytest.raises(dp.InvalidInput, match="positions are not all zero"):
        resolve_start(without_positions, "positional")
    with pytest.raises(dp.InvalidInput, match="two or more columns"):
        resolve_start(paper, "mixed")
    assert callable(resolve_start(without_positions, "semantic"))
