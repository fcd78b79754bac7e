"""Shares in the solvable model, the model with measured tokens, and the weight-space version."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.errors import InvalidInput
from dotphase.heads.collect import collect
from dotphase.heads.shares import _factor_shares
from dotphase.heads.solvable import field_shares
from dotphase.heads.source import chunks
from dotphase.numerics.statistics import jackknife_error
from dotphase.runtime.precision import use_precision
from result_checks import assert_is_a_result


def test_shares_of_fields_are_those_of_sampled_attention():
    m, q = [0.5, -0.2, 0.9], 0.7
    rng = np.random.default_rng(0)
    vocabulary, sentences = 40, 2000
    # Contents at the quantiles of the normal distribution: a small vocabulary suffices.
    ranks = (np.arange(vocabulary) + 0.5) / vocabulary
    contents = np.sqrt(q) * np.asarray(jax.scipy.stats.norm.ppf(ranks))
    contents *= np.sqrt(q) / contents.std()
    tokens = np.argsort(rng.random((sentences, vocabulary)), axis=1)[:, : len(m)]
    fields = np.asarray(m) + contents[tokens]
    scores = (fields[:, :, None] * fields[:, None, :])[:, None]
    settings = dp.heads.ShareSettings(scores=True, symbols=vocabulary)
    with use_precision(np.float32):
        parts = chunks(scores, tokens, None, None, settings)
        measured, _ = _factor_shares(collect(parts, settings))
    for name, value in field_shares(np.asarray(m), q).items():
        # Tokens of a sentence differ, which changes averages by some 1/40.
        stderr = jackknife_error(measured[name][1:, 0])
        assert abs(value - measured[name][0, 0]) < 4 * stderr + 0.035


def test_limits_of_the_shares():
    positional = field_shares(np.array([1.0, -1.0]), 1e-12)
    assert positional["positional"] == pytest.approx(1) and abs(positional["rest"]) < 1e-9
    # Without positions x_11 = w_1 (w_1 - w_2)/2 with E x^2 = 1, E x = 1/2, E[x | w_1] = w_1^2/2.
    free = field_shares(np.zeros(2), 1.0)
    assert free["positional"] == pytest.approx(1 / 4)
    assert free["semantic"] == pytest.approx(7 / 8) and free["interaction"] == pytest.approx(-1 / 4)
    assert sum(free.values()) == pytest.approx(1)
    for m in ([0.0, 0.0], [1.0]):
        with pytest.raises(InvalidInput, match="scores without variance"):
            field_shares(np.array(m), 0.0)


def test_shares_of_a_solution_are_those_of_its_fields():
    model = dp.positional_semantic()
    m, q = np.array([[0.7], [-0.7]]), 0.4 * np.ones((2, 1, 1))
    solution = SimpleNamespace(model=model, overlaps=SimpleNamespace(m=m, q=q))
    expected = field_shares(np.array([0.7, -0.7]), 0.4)
    assert dp.heads.solution_shares(solution) == pytest.approx(expected)
    with pytest.raises(InvalidInput, match="student_rank"):
        dp.heads.solution_shares(SimpleNamespace(model=dp.positional_semantic(student_rank=2)))


def weights(seed=0, d=12, rank=3):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) for shape in ((d, rank), (d, rank), (6, d), (80, d)))


def test_weight_space_shares_are_those_of_all_scores():
    query, key, positions, tokens = weights()
    x = positions[:, None] + tokens
    scores = np.einsum("iac,cr,dr,jbd->iajb", x, query, key, x, optimize=True)
    scores -= scores.mean(axis=(2, 3), keepdims=True)
    head = dp.heads.query_key(query, key, positions, tokens)
    total = (scores**2).mean()
    assert head.positional == pytest.approx((scores.mean(axis=(1, 3)) ** 2).mean() / total)
    assert head.semantic == pytest.approx((scores.mean(axis=(0, 2)) ** 2).mean() / total)
    assert head.positional + head.semantic + head.interaction == pytest.approx(1)


def test_weights_within_one_span_are_aligned_with_it(tmp_path):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    positions, tokens = (
        rng.normal(size=(30, 4)) @ basis[:, :4].T,
        rng.normal(size=(90, 16)) @ basis[:, 4:].T,
    )
    w = basis[:, :2]
    head = dp.heads.query_key(w, w, positions, tokens)
    assert (
        head.positional > 0.9 and head.alignment["positions"] > 0.9 > 0.1 > head.alignment["tokens"]
    )
    assert head.symmetric == pytest.approx(1) and head.effective_rank == pytest.approx(2)
    assert head.chance["positions"] == pytest.approx((4 / 20) ** 2)
    assert_is_a_result(head, tmp_path)
    with pytest.raises(InvalidInput, match="query"):
        dp.heads.query_key(w, w[:, :1], positions, tokens)
    with pytest.raises(InvalidInput, match="positions"):
        dp.heads.query_key(w, w, positions[:, :3], tokens)
    for name in ("query", "key"):
        with pytest.raises(InvalidInput, match=f"{name} = .*finite"):
            dp.heads.query_key(
                **{"query": w, "key": w, name: w * np.nan}, positions=w.T, tokens=w.T
            )


@pytest.mark.parametrize(
    "change",
    [
        {"form": np.zeros((3, 3))},
        {"form": np.eye(3) * np.nan},
        {"form": np.eye(2)},
        {"sentences": 0},
    ],
)
def test_arguments_of_the_solvable_model_are_checked_first(change):
    arguments = {"tokens": np.eye(3), "positions": np.eye(3)[:2], "sentences": 9, "alpha_min": -1}
    with pytest.raises(InvalidInput, match=f"^{next(iter(change))} = "):
        dp.heads.solvable(**(arguments | change))


def test_the_model_with_measured_tokens(tmp_path):
    rng = np.random.default_rng(0)
    tokens = 3.0 * rng.normal(size=(4000, 40))
    position = rng.normal(size=40)
    position *= 3.0 / 0.5 / np.linalg.norm(position)
    search = {"alpha_min": 0.9, "alpha_max": 1.7, "log2_points": 12, "limits": False}
    head = dp.heads.solvable(tokens, [position, -position], 80, np.eye(40), **search)
    # White tokens and the Gram matrix of the paper: the paper's alpha_c at this size.
    np.testing.assert_allclose(head.model.positions, [[1, -1], [-1, 1]], rtol=0.02)
    assert head.alpha_c == pytest.approx(1.25, abs=0.1) and head.alpha == 2.0
    assert head.symmetric == 1.0 and "n/d = 2 of the data" in repr(head)
    assert "Assumed: sentences of 2 independent Gaussian tokens" in str(head)
    assert "predicts no transition" in str(head)
    assert_is_a_result(head, tmp_path)
    with pytest.raises(InvalidInput, match="positions"):
        dp.heads.solvable(tokens, [position[:3]], 80)
