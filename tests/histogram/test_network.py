"""The transformer against a naive one, and what the constraint hides."""

import jax
import numpy as np
import pytest

from dotphase.errors import InvalidInput
from dotphase.histogram.network import (
    FREE,
    MECHANISMS,
    apply,
    constrain,
    constraint,
    distance,
    initialize,
    summed_distance,
)

SYMBOLS, LENGTH, DIMENSION, HIDDEN = 3, 4, 8, 16
run = jax.jit(apply)
initialize_network = jax.jit(initialize, static_argnums=(1, 2, 3, 4))


def a_network(mechanism, seed=0):
    network = initialize_network(jax.random.key(seed), SYMBOLS, LENGTH, DIMENSION, HIDDEN)
    return constrain(network, constraint(mechanism, DIMENSION))


def some_sequences(rng, n=7):
    return rng.integers(0, SYMBOLS, (n, LENGTH))


def naive(network, sequence):
    """One sequence, step by step, in float64."""
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), network)
    z = np.stack([p.tokens[symbol] + p.positions[k] for k, symbol in enumerate(sequence)])
    scores = (z @ p.query) @ (z @ p.key).T / np.sqrt(DIMENSION)
    attention = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    mixed = attention @ (z @ p.value)
    rows = []
    for row in mixed:
        normed = (row - row.mean()) / np.sqrt(row.var() + 1e-5) * p.norm_scale + p.norm_shift
        hidden = np.maximum(normed @ p.hidden_weight + p.hidden_bias, 0)
        rows.append(hidden @ p.output_weight + p.output_bias)
    return np.stack(rows), attention


@pytest.mark.parametrize("mechanism", [*MECHANISMS, FREE])
def test_tables_give_what_the_naive_network_gives(mechanism, rng):
    network, sequences = a_network(mechanism), some_sequences(rng)
    output = run(network, sequences)
    for row, sequence in enumerate(sequences):
        logits, attention = naive(network, sequence)
        np.testing.assert_allclose(output.logits[row], logits, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(output.attention[row], attention, rtol=1e-4, atol=1e-6)


def test_positional_attention_does_not_see_the_tokens(rng):
    attention = np.asarray(run(a_network("positional"), some_sequences(rng)).attention)
    np.testing.assert_array_equal(attention, np.broadcast_to(attention[0], attention.shape))


def test_semantic_attention_does_not_see_the_positions(rng):
    network, sequences = a_network("semantic"), some_sequences(rng)
    order = rng.permutation(LENGTH)
    attention = np.asarray(run(network, sequences).attention)
    shuffled = np.asarray(run(network, sequences[:, order]).attention)
    np.testing.assert_allclose(shuffled, attention[:, order][:, :, order], rtol=1e-5)
    free = np.asarray(run(a_network(FREE), sequences).attention)
    other = np.asarray(run(a_network(FREE), sequences[:, order]).attention)
    assert np.abs(other - free[:, order][:, :, order]).max() > 0.01


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_flows_back_into_the_hidden_half(mechanism, rng):
    rule = constraint(mechanism, DIMENSION)
    sequences = some_sequences(rng)
    weights = rng.normal(size=(len(sequences), LENGTH, LENGTH + 1))
    network = initialize_network(jax.random.key(1), SYMBOLS, LENGTH, DIMENSION, HIDDEN)

    @jax.jit
    @jax.grad
    def output_gradient(network):
        return (apply(constrain(network, rule), sequences).logits * weights).sum()

    gradient = output_gradient(network)
    half = DIMENSION // 2
    first, second = slice(None, half), slice(half, None)
    readable, hidden = (first, second) if mechanism == "semantic" else (second, first)
    assert not np.any(gradient.tokens[:, second]) and np.all(gradient.tokens[:, first] != 0)
    assert not np.any(gradient.positions[:, first]) and np.all(gradient.positions[:, second] != 0)
    for matrix in (gradient.query, gradient.key):
        assert not np.any(matrix[hidden]) and np.all(matrix[readable] != 0)


def test_start_follows_the_conventions():
    network = initialize_network(jax.random.key(0), 15, 10, 64, 128)
    assert abs(np.std(network.tokens) - 1) < 0.1 and abs(np.std(network.positions) - 1) < 0.1
    for weight, inputs in ((network.query, 64), (network.hidden_weight, 64),
                           (network.output_weight, 128)):  # fmt: skip
        size = float(np.abs(weight).max())
        assert 0.98 * inputs**-0.5 < size <= inputs**-0.5


def test_distances(rng):
    first, second = a_network(FREE, 0), a_network(FREE, 1)
    parts = jax.tree.leaves(jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), first, second))
    flat = np.concatenate([part.ravel() for part in parts])
    np.testing.assert_allclose(distance(first, second), np.linalg.norm(flat), rtol=1e-6)
    expected = sum(np.linalg.norm(part.ravel()) for part in parts)
    np.testing.assert_allclose(summed_distance(first, second), expected, rtol=1e-6)
    pairs = [jax.tree.map(lambda *leaves: np.stack(leaves), one, first) for one in (first, second)]
    both = distance(*pairs)
    np.testing.assert_allclose(both, [np.linalg.norm(flat), 0], rtol=1e-6)


def test_bad_constraints():
    with pytest.raises(InvalidInput, match="mechanism"):
        constraint("both", 8)
    with pytest.raises(InvalidInput, match="even"):
        constraint("semantic", 7)
