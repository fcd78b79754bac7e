from __future__ import annotations

import jax
import numpy as np
import pytest

import dotphase as dp


def test_positions_have_the_gram_matrix_of_the_model(three_tokens):
    data = dp.sample(three_tokens, d=200, n=400, key=0)
    p = np.asarray(data.positions)
    np.testing.assert_allclose(p @ p.T, three_tokens.positions, atol=1e-13)


def test_positions_of_the_paper(paper):
    p = np.asarray(dp.sample(paper, d=10, n=5, key=0).positions)
    np.testing.assert_allclose(p[0], np.full(10, 10**-0.5), rtol=1e-13)
    np.testing.assert_allclose(p[1], -p[0], rtol=1e-13)


def test_tokens_have_their_variances(three_tokens):
    data = dp.sample(three_tokens, d=200, n=400, key=1)
    stds = np.asarray(data.tokens).std(axis=(0, 2))
    # 80 000 numbers each: relative error of the standard deviation 1/sqrt(2 * 80000).
    np.testing.assert_allclose(stds, three_tokens.sigma, rtol=5 / np.sqrt(160_000))
    assert data.teacher_weights.shape == (200, 1)


def test_same_key_same_data_and_more_sentences_extend_it(paper):
    few = dp.sample(paper, d=10, n=5, key=3)
    again = dp.sample(paper, d=10, n=5, key=jax.random.key(3))
    more = dp.sample(paper, d=10, n=9, key=3)
    different = dp.sample(paper, d=10, n=5, key=4)
    np.testing.assert_array_equal(few.tokens, again.tokens)
    np.testing.assert_array_equal(few.tokens, more.tokens[:5])
    assert not np.array_equal(few.tokens, different.tokens)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision(paper, dtype):
    data = dp.sample(paper, d=10, n=5, key=3, dtype=dtype)
    assert {leaf.dtype.name for leaf in data} == {dtype}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"d": 1, "n": 5, "key": 0}, "d"),
        ({"d": 5, "n": 0, "key": 0}, "n"),
        ({"d": 5, "n": 3, "key": -1}, "key"),
        ({"d": 5, "n": 3, "key": 0, "dtype": "float16"}, "dtype"),
    ],
)
def test_bad_input(paper, arguments, field):
    with pytest.raises(dp.InvalidInput) as caught:
        dp.sample(paper, **arguments)
    assert caught.value.field == field
