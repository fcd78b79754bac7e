from __future__ import annotations

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.theory import bayes
from models import softmax


@pytest.mark.parametrize(("alpha", "overlap"), [(0.3, 0.268), (0.45, 0.786)])
def test_known_overlaps_of_two_tokens(paper, alpha, overlap):
    found = dp.bayes.optimal(paper, alpha)
    assert found.converged and found.unique
    assert found.overlap == pytest.approx(overlap, abs=6e-4)
    assert found.q == pytest.approx([0.25 * found.overlap] * 2)
    assert pytest.approx([0.25 * (1 - found.overlap)] * 2) == found.V


@pytest.mark.parametrize("length", [2, 3, 5])
def test_transitions_are_where_the_expansions_say(length):
    weak, exact = bayes.transitions(length)
    for alpha, part in ((0.99 * weak, "nothing"), (1.01 * weak, "some"), (0.99 * exact, "most")):
        overlap, unique = bayes._overlap(alpha, length)
        assert unique
        assert {"nothing": overlap == 0, "some": 0 < overlap < 0.1, "most": 0.9 < overlap < 1}[part]
    assert bayes._overlap(1.01 * exact, length)[0] == 1


def test_transitions_of_the_paper():
    assert bayes.transitions(2) == pytest.approx((1 / 6, 1 / 2))


@pytest.mark.parametrize("overlap", [0.05, 0.4, 0.9])
def test_quadrature_agrees_with_sampling(overlap, rng):
    """The two-dimensional integral against the definition, sampled in four dimensions."""
    a, z = rng.normal(size=(2, 400_000, 2))
    x = np.sqrt(overlap) * a + np.sqrt(1 - overlap) * z
    field = np.sqrt(overlap) * np.sum(a * x, axis=1) / (1 - overlap)
    miss = np.sum((np.tanh(field)[:, None] * x - np.sqrt(overlap) * a) ** 2, axis=1)
    alpha = 0.3
    sampled = alpha * miss / (1 - overlap) - overlap
    expected = bayes._drive(overlap, alpha, 2)
    assert abs(sampled.mean() - expected) < 4 * sampled.std() / np.sqrt(len(sampled))


def test_knowing_nothing_is_the_linear_layer_and_knowing_all_is_no_error(paper):
    nothing, everything = dp.bayes.optimal(paper, 0.1), dp.bayes.optimal(paper, 0.6)
    assert not nothing.weak_recovery
    assert nothing.test_error == pytest.approx(dp.analysis.linear_test_error(paper), rel=2e-3)
    assert everything.exact_recovery and everything.test_error == 0
    errors = [dp.bayes.optimal(paper, alpha).test_error for alpha in (0.2, 0.3, 0.4, 0.49)]
    assert np.all(np.diff([nothing.test_error, *errors, 0.0]) < 0)


def test_no_trained_attention_is_better(paper):
    """Even at overlaps as large as those of the semantic minimum at four times the data."""
    bound = dp.bayes.optimal(paper, 0.45).test_error
    assert bound < dp.solve(paper, 1.8, "semantic", log2_points=13).test_error


def _passing_messages(rng, d, alpha, sigma=0.5, iterations=80):
    """Bayes-optimal message passing on one data set; |Q.Q*|/d and |Q|^2/d at its end."""
    n = round(alpha * d)
    teacher = rng.normal(size=d)
    x = sigma * rng.normal(size=(n, 2, d))
    h = x @ teacher / np.sqrt(d)
    weights, left, g = 0.1 * rng.normal(size=d), 1.0, np.zeros((n, 2))
    for _ in range(iterations):
        V = sigma**2 * left
        omega = x @ weights / np.sqrt(d) - V * g
        guess = np.tanh(np.sum(h * omega, axis=1, keepdims=True) / V)
        g = (guess * h - omega) / V
        precision = sigma**2 * np.sum(1 - (1 - guess**2) * h**2 / V) / V / d
        push = np.tensordot(x, g, axes=([0, 1], [0, 1])) / np.sqrt(d)
        weights = (push + precision * weights) / (1 + precision)
        left = 1 / (1 + precision)
    return abs(weights @ teacher) / d, weights @ weights / d


def test_message_passing_on_real_data_reaches_the_overlap(paper):
    """d = 1000, random start: within the fluctuations over data sets."""
    alpha = 0.45
    runs = np.array([_passing_messages(np.random.default_rng(k), 1000, alpha) for k in range(12)])
    expected = dp.bayes.optimal(paper, alpha).overlap
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert np.all(error < 0.03)
    assert np.all(np.abs(mean - expected) < 4 * error)


def test_teachers_without_a_known_posterior_are_refused():
    rank_two = dp.Model(softmax, softmax, length=2, teacher_rank=2)
    single = dp.scalar_link(lambda h: h, lambda h: h)
    other = dp.Model(lambda h: jax.nn.sigmoid(h @ h.T), softmax, length=2)
    for model in (rank_two, single, other):
        with pytest.raises(dp.InvalidInput, match="MixedTeacher"):
            dp.bayes.optimal(model, 0.3)


def test_other_spellings_sizes_and_a_teacher_that_tells_nothing(paper):
    three = dp.Model(softmax, softmax, length=3, sigma=[0.3, 0.5, 0.7])
    found = dp.bayes.optimal(three, 0.2)
    assert found.weak_recovery and found.test_error > 0
    # Scales of the tokens change the fields, not what is known of the weights.
    assert np.asarray(found.q) / np.asarray([0.3, 0.5, 0.7]) ** 2 == pytest.approx(
        [found.overlap] * 3
    )
    silent = dp.bayes.optimal(dp.positional_semantic(omega=1.0), 0.45)
    assert silent.overlap == 0 and silent.test_error < 1e-20


def test_correlated_tokens_change_the_error_and_not_the_overlap(paper, rng):
    model = paper.replace(correlation=[[1.0, 0.6], [0.6, 1.0]])
    assert dp.bayes.optimal(model, 0.3).overlap == dp.bayes.optimal(paper, 0.3).overlap
    # Nothing is known: the error is the spread of T, in the metric of the tokens.
    covariance = 0.25 * np.array([[1.0, 0.6], [0.6, 1.0]])
    h = rng.multivariate_normal([0, 0], covariance, 2**15)[..., None]
    targets = np.asarray(jax.vmap(model.teacher)(h))
    miss = targets - targets.mean(axis=0)
    sampled = np.einsum("nik,kl,nil->", miss, covariance, miss) / (2 * len(h))
    assert dp.bayes.optimal(model, 0.1).test_error == pytest.approx(sampled, rel=0.03)
    with pytest.raises(dp.InvalidInput, match="latent"):
        dp.bayes.optimal(dp.load_model("single-location"), 0.3)


def test_curve_and_text(paper):
    data = dp.bayes.curve(paper, [0.1, 0.3, 0.6])
    assert data["test_error"].dims == ("alpha",)
    assert data["weak_recovery"].values.tolist() == [False, True, True]
    assert data["exact_recovery"].values.tolist() == [False, False, True]
    assert float(data["exact_recovery_alpha"]) == 0.5
    assert "part of the teacher" in str(dp.bayes.optimal(paper, 0.3))
    assert dp.bayes.optimal(paper, 0.3).to_dict()["unique"] is True
    with pytest.raises(dp.InvalidInput, match="alphas"):
        dp.bayes.curve(paper, [0.3, 0.3])
