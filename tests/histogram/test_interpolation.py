"""The loss between two networks, and the symmetries that alignment may use."""

import equinox as eqx
import jax
import numpy as np
import pytest

from dotphase.errors import InvalidInput
from dotphase.histogram.interpolation import align, loss_between
from dotphase.histogram.network import apply, distance, initialize
from dotphase.histogram.task import Task, draw
from result_checks import assert_is_a_result

TASK = Task(symbols=3, length=4, samples=200)


def a_network(seed):
    network = jax.jit(initialize, static_argnums=(1, 2, 3, 4))(jax.random.key(seed), 3, 4, 8, 16)
    return jax.tree.map(np.asarray, network)


def disguise(network, rng):
    """The same function, written differently."""
    hidden, coordinates = rng.permutation(16), rng.permutation(8)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0].astype(np.float32)
    return eqx.tree_at(
        lambda n: (n.query, n.key, n.value, n.norm_scale, n.norm_shift, n.hidden_weight,
                   n.hidden_bias, n.output_weight),
        network,
        (network.query @ turn, network.key @ turn, network.value[:, coordinates],
         network.norm_scale[coordinates], network.norm_shift[coordinates],
         network.hidden_weight[coordinates][:, hidden], network.hidden_bias[hidden],
         network.output_weight[hidden]),
    )  # fmt: skip


def test_alignment_undoes_a_disguise(rng):
    network = a_network(0)
    hidden = disguise(network, rng)
    assert distance(network, hidden) > 1
    assert distance(network, align(network, hidden)) < 1e-4


def test_alignment_changes_nothing_but_the_distance(rng):
    first, second = a_network(0), a_network(1)
    turned = align(first, second)
    assert distance(first, turned) < distance(first, second)
    sequences, run = draw(TASK).held_out, jax.jit(apply)
    np.testing.assert_allclose(
        run(turned, sequences).logits, run(second, sequences).logits, rtol=1e-3, atol=1e-4
    )


def test_line_between_a_network_and_itself_is_flat(rng, tmp_path):
    network = a_network(0)
    split = draw(TASK)
    result = loss_between(network, disguise(network, rng), split, points=5)
    assert result.barrier > 1e-3
    assert abs(result.aligned_barrier) < 1e-4
    np.testing.assert_allclose(result.loss[[0, -1]], result.aligned_loss[[0, -1]], rtol=1e-4)
    assert result.position.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert_is_a_result(result, tmp_path)
    with pytest.raises(InvalidInput, match="points"):
        loss_between(network, network, split, points=1)
