"""Data sets of few sizes; padding has no effect."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d import batches
from dotphase.finite_d.batches import (
    MIN_STEP,
    SIZES_PER_OCTAVE,
    choose_runs_per_batch,
    padded_size,
    split_batches,
)
from dotphase.finite_d.datasets import draw_dataset, position_vectors
from dotphase.finite_d.initialization import resolve_start
from dotphase.finite_d.linear_layer import linear_layer
from dotphase.finite_d.preparation import prepare, prepare_runs
from dotphase.gamp.iteration import initial_state, iterate, sentence_blocks

D, N = 10, 21


def test_few_sizes_with_little_padding():
    counts = range(1, 5000)
    sizes = [padded_size(n) for n in counts]
    for n, size in zip(counts, sizes, strict=True):
        assert n <= size < n + max(MIN_STEP, n / SIZES_PER_OCTAVE) + 1
        assert padded_size(size) == size
    assert sizes == sorted(sizes) and len(set(sizes)) < 30


def test_batches_have_one_size_and_every_item():
    split = split_batches(list(range(7)), 3)
    assert [batch for batch, _ in split] == [[0, 1, 2], [3, 4, 5], [6]]
    assert split[-1][1] == [6, 6, 6] and split_batches([], 3) == []


def test_the_number_of_runs_per_batch(monkeypatch):
    monkeypatch.setattr(batches.memory_limit, "available_bytes", lambda: 2**30)
    choose = partial(choose_runs_per_batch, d=10)
    assert choose(4, 2**20, 3) == 3
    assert choose(None, 2**20, 100) == 1
    assert choose(None, 2**20, 100, cpu_limit=50) == 2**25 // 2**20
    monkeypatch.setattr(batches, "on_cpu", lambda: False)
    assert choose(None, 2**20, 1000) == batches.MAX_RUNS
    assert choose(None, 2**26, 1000) == 8
    with pytest.raises(dp.InvalidInput, match="use runs_per_batch 4 or less"):
        choose(5, 2**28, 5)
    with pytest.raises(dp.InvalidInput, match="d = 10"):
        choose(None, 2**31, 5)


@pytest.fixture(scope="module")
def sets(paper):
    """A prepared data set, and the same sentences without padding."""
    with jax.enable_x64(True):
        keys, positions = jax.random.split(jax.random.key(3), 1), position_vectors(paper, D)
        data, first = prepare_runs(
            paper, resolve_start(paper, "random"), keys, N, jnp.asarray(positions)
        )
        with_padding, first = jax.tree.map(lambda leaf: leaf[0], (data, first))
        drawn = draw_dataset(paper, N, keys[0], jnp.asarray(positions))
        return with_padding, eqx.filter_jit(prepare)(paper, drawn), drawn, first


def test_the_first_sentences_are_not_padding(sets, paper):
    with_padding, exact, drawn, _ = sets
    assert with_padding.reduced.z.shape[0] == padded_size(N) > N
    assert float(jnp.sum(with_padding.reduced.used)) == N
    np.testing.assert_array_equal(with_padding.reduced.z[:N], exact.reduced.z)
    expected = eqx.filter_jit(linear_layer)(paper, drawn)
    np.testing.assert_allclose(with_padding.linear, expected, rtol=1e-10)


def test_padding_changes_no_message(sets, paper):
    """Neither weights, gradients nor shares of two minima, over three iterations with memory."""
    padded, unpadded, _, first = sets

    def follow(reduced):
        V = 40 * jnp.asarray(paper.rho)[:, None, None] * jnp.ones((2, 1, 1))
        state, sentences, history = initial_state(reduced, first, V), sentence_blocks(reduced), []
        for k in range(3):
            state, diagnostics = iterate(
                paper, reduced, sentences, state, jnp.asarray(0.3), jnp.asarray(k)
            )
            history.append(diagnostics)
        return state.weights, state.V, history

    with_padding, exact = (follow(data.reduced) for data in (padded, unpadded))
    assert jnp.max(jnp.abs(with_padding[0] - first)) > 0.01
    for actual, expected in zip(*map(jax.tree.leaves, (with_padding, exact)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-12)


def test_another_alpha_compiles_nothing_again(paper):
    compiled = []

    def count(name, *_, **__):
        if name.endswith("backend_compile_duration"):
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(count)
    trainings = []
    for alpha in (1.2, 1.5):
        compiled.clear()
        trainings.append(dp.train(paper, alpha, 40, seeds=1))
    assert not compiled
    assert [training.n for training in trainings] == [48, 60]
    assert trainings[0].mean["train_loss"] != trainings[1].mean["train_loss"]
