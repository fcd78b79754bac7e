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


def test_the_teacher_has_the_norm_of_the_limit_unless_it_is_random(paper):
    """``Q*^T Q*/d`` is the identity, for any number of columns; its direction is the same."""
    model = paper.replace(teacher=lambda h: dp.softmax_attention(h), teacher_rank=3, student_rank=3)
    drawn = {
        norm: np.asarray(dp.sample(model, 20, 5, 0, teacher_norm=norm).teacher_weights)
        for norm in ("fixed", "random")
    }
    np.testing.assert_allclose(drawn["fixed"].T @ drawn["fixed"] / 20, np.eye(3), atol=1e-12)
    norm = np.linalg.norm(drawn["random"][:, 0])
    assert abs(norm / np.sqrt(20) - 1) > 1e-3
    np.testing.assert_allclose(drawn["fixed"][:, 0], drawn["random"][:, 0] * np.sqrt(20) / norm)
    with pytest.raises(dp.InvalidInput, match="one of fixed, random"):
        dp.sample(paper, 20, 5, 0, teacher_norm="unit")
    with pytest.raises(dp.InvalidInput, match="columns 3"):
        dp.sample(model, 2, 5, 0)


def test_every_engine_draws_the_same_teacher(paper):
    """theta of a student that takes no step is the norm of its teacher."""
    rho = float(paper.rho[0])
    train = {"steps": 1, "optimizer": "gd", "lr": 1e-12, "held_out": 2, "seeds": 2}
    for norm in ("fixed", "random"):
        runs = dp.train(paper, 1.0, 40, teacher_norm=norm, **train)
        sizes = np.asarray([run.theta for run in runs.runs]) / rho
        passing = dp.amp(paper, 1.0, 40, seeds=2, iterations=1, teacher_norm=norm, held_out=2)
        first = [run.history[0]["theta"] / rho for run in passing.runs]
        np.testing.assert_allclose(first, sizes, rtol=1e-9)
        assert np.allclose(sizes, 1, atol=1e-9) == (norm == "fixed")
