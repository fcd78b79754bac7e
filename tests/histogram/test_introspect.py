"""Scores of attention, and the trained networks that come with the package."""

import jax
import numpy as np
import pytest

from dotphase import histogram
from dotphase.errors import InvalidInput
from dotphase.histogram.network import MECHANISMS, initialize

initialize_network = jax.jit(initialize, static_argnums=(1, 2, 3, 4))

FRESH = histogram.draw(histogram.Task(samples=5000), seed=2024)


@pytest.fixture(scope="module")
def networks():
    return {name: histogram.shipped(name) for name in MECHANISMS}


@pytest.fixture(scope="module")
def scores_of(networks):
    return {name: histogram.statistics(networks[name], FRESH.train) for name in MECHANISMS}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_shipped_networks_count(scores_of, mechanism):
    scores = scores_of[mechanism]
    assert scores.accuracy >= 0.995
    # Every token that occurs once or twice is common enough to be counted right.
    assert min(scores.accuracy_by_count[:2]) > 0.995
    assert sum(scores.tokens_by_count) == FRESH.train.size


def test_shipped_positional_attention_is_as_published(networks):
    # arXiv:2402.03902: 41-43% on the diagonal and 6-7% elsewhere, whatever the tokens.
    scores = histogram.attention(networks["positional"], "BBCCDDBBBB")
    diagonal, elsewhere = np.diagonal(scores), scores[~np.eye(10, dtype=bool)]
    assert np.all((diagonal > 0.35) & (diagonal < 0.5))
    assert np.all((elsewhere > 0.05) & (elsewhere < 0.08))
    np.testing.assert_array_equal(scores, histogram.attention(networks["positional"], "ABCDEFGHIJ"))


def test_shipped_semantic_attention_is_as_published(networks):
    # arXiv:2402.03902: 15% on each of the Bs, 28% on each C and D.
    scores = histogram.attention(networks["semantic"], "BBCCDDBBBB")
    b = [0, 1, 6, 7, 8, 9]
    assert np.all(np.abs(scores[np.ix_(b, b)] - 0.15) < 0.02)
    for pair in ([2, 3], [4, 5]):
        assert np.all(np.abs(scores[np.ix_(pair, pair)] - 0.28) < 0.05)


def test_scores_tell_the_mechanisms_apart(scores_of):
    semantic, positional = (scores_of[name] for name in MECHANISMS)
    assert positional.input_variance == 0 and positional.positional_score == 1
    assert positional.semantic_score < 0.02
    assert semantic.positional_score < 0.05 and semantic.semantic_score > 0.4
    assert semantic.equal_weight > 2 * semantic.other_weight


def test_counts_of_typed_sequences(networks):
    for network in networks.values():
        assert histogram.predict(network, "ABCDEFGHIJ").tolist() == [1] * 10
        assert histogram.predict(network, "AABBCCDDEE").tolist() == [2] * 10
        with pytest.raises(InvalidInput, match="10 letters from A to O"):
            histogram.attention(network, "BBCCDDBBBZ")


def test_scores_by_hand():
    network = initialize_network(jax.random.key(3), 3, 4, 8, 16)
    sequences = histogram.draw(histogram.Task(symbols=3, length=4, samples=100)).train
    scores = histogram.statistics(network, sequences)
    letters = "ABC"
    maps = np.stack([histogram.attention(network, "".join(letters[s] for s in row))
                     for row in sequences]).astype(float)  # fmt: skip
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    within = np.mean([maps[:, i, j].var() for i, j in pairs])
    between = np.var([maps[:, i, j].mean() for i, j in pairs])
    np.testing.assert_allclose(scores.input_variance, within, rtol=1e-5)
    np.testing.assert_allclose(scores.positional_score, between / (within + between), rtol=1e-5)
    equal = [maps[n, i, j] for n, row in enumerate(sequences) for i, j in pairs if row[i] == row[j]]
    np.testing.assert_allclose(scores.equal_weight, np.mean(equal), rtol=1e-5)
    contrasts = []
    for s in range(3):
        e, o = (
            np.mean([maps[n, i, j] for n, row in enumerate(sequences) for i, j in pairs
                     if row[i] == s and (row[j] == s) == same])
            for same in (True, False)
        )  # fmt: skip
        contrasts.append(abs(e - o) / (e + o))
    np.testing.assert_allclose(scores.semantic_score, np.mean(contrasts), rtol=1e-5)


def test_many_networks_are_not_one():
    network = initialize_network(jax.random.key(0), 3, 4, 8, 16)
    with pytest.raises(InvalidInput, match="one network"):
        histogram.attention(jax.tree.map(lambda leaf: leaf[None], network), "ABBA")
    with pytest.raises(InvalidInput, match="mechanism"):
        histogram.shipped("both")
