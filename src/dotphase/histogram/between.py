"""The loss between two solutions, on the straight line of parameters that joins them.

A network can be written in many ways without changing what it computes: hidden units can be
permuted, so can the coordinates that LayerNorm sees (with the columns of V), and query and key
can be turned together. A barrier on the straight line may be due to that alone. The second
solution is therefore also brought as close to the first as these symmetries allow (embeddings
are left as they are: the constraint has given their two halves a meaning).
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from dotphase.config import validation
from dotphase.histogram.network import Network, distance, in_single_precision
from dotphase.histogram.task import Split
from dotphase.histogram.train import evaluate

#: Places on the line, and the most rounds of matching.
PLACES, ROUNDS = 41, 50


@dataclass(frozen=True)
class LossBetween:
    """Held-out loss and accuracy on the line; ``aligned``: after the symmetries are used.

    Attributes
    ----------
    place : 0 at the first solution, 1 at the second
    loss, accuracy, aligned_loss, aligned_accuracy : at each place
    distance, aligned_distance : length of the line

    Examples
    --------
    >>> network = dp.histogram.shipped("semantic")
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> dp.histogram.loss_between(network, network, split, places=3).barrier
    0.0
    """

    place: Float[np.ndarray, " places"]
    loss: Float[np.ndarray, " places"]
    accuracy: Float[np.ndarray, " places"]
    aligned_loss: Float[np.ndarray, " places"]
    aligned_accuracy: Float[np.ndarray, " places"]
    distance: float
    aligned_distance: float

    @property
    def barrier(self) -> float:
        """Highest loss on the line over the higher of its ends."""
        return float(self.loss.max() - max(self.loss[0], self.loss[-1]))

    @property
    def aligned_barrier(self) -> float:
        """The same after alignment."""
        ends = max(self.aligned_loss[0], self.aligned_loss[-1])
        return float(self.aligned_loss.max() - ends)


def loss_between(
    first: Network, second: Network, split: Split, places: int = PLACES
) -> LossBetween:
    """Loss and accuracy on held-out sequences between two networks.

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> networks = [dp.histogram.shipped(name) for name in ("semantic", "positional")]
    >>> dp.histogram.loss_between(*networks, split, places=3).barrier > 1
    True
    """
    place = np.linspace(0.0, 1.0, validation.integer("places", places, at_least=2))
    ends = (second, align(first, second))
    curves = [row for end in ends for row in _along(first, end, split, place)]
    return LossBetween(place, *curves, *(float(distance(first, end)) for end in ends))


@in_single_precision
def _along(first: Network, second: Network, split: Split, place: np.ndarray) -> np.ndarray:
    """Rows of losses and of accuracies."""

    def mixed(t: float) -> Network:
        return jax.tree.map(lambda a, b: np.float32(1 - t) * a + np.float32(t) * b, first, second)

    held_out = split.held_out, split.held_out_counts
    return np.asarray([_evaluate(mixed(t), *held_out) for t in place], np.float64).T


_evaluate = jax.jit(evaluate)


def align(first: Network, second: Network) -> Network:
    """The second network, rewritten without changing what it computes, close to the first.

    Permutations of hidden units and of LayerNorm's coordinates are matched in turn until the
    distance no longer falls; query and key are turned by the orthogonal matrix that brings
    them closest.
    """
    second = jax.tree.map(np.asarray, second)
    left, _, right = np.linalg.svd(second.query.T @ first.query + second.key.T @ first.key)
    turned = (second.query @ (left @ right), second.key @ (left @ right))
    second = eqx.tree_at(lambda some: (some.query, some.key), second, turned)
    closest = float(distance(first, second))
    for _ in range(ROUNDS):
        candidate = _match_coordinates(first, _match_hidden(first, second))
        found = float(distance(first, candidate))
        if found >= closest:
            break
        second, closest = candidate, found
    return second


def _match_hidden(first: Network, second: Network) -> Network:
    """Hidden units in the order that is closest to those of the first network."""
    gain = first.hidden_weight.T @ second.hidden_weight
    gain = gain + np.outer(first.hidden_bias, second.hidden_bias)
    order = _best(gain + first.output_weight @ second.output_weight.T)
    return eqx.tree_at(
        lambda some: (some.hidden_weight, some.hidden_bias, some.output_weight),
        second,
        (second.hidden_weight[:, order], second.hidden_bias[order], second.output_weight[order]),
    )


def _match_coordinates(first: Network, second: Network) -> Network:
    """Coordinates of LayerNorm in the order that is closest to those of the first network."""
    gain = first.value.T @ second.value + first.hidden_weight @ second.hidden_weight.T
    gain = gain + np.outer(first.norm_scale, second.norm_scale)
    order = _best(gain + np.outer(first.norm_shift, second.norm_shift))
    norm = (second.norm_scale[order], second.norm_shift[order])
    return eqx.tree_at(
        lambda some: (some.value, some.norm_scale, some.norm_shift, some.hidden_weight),
        second,
        (second.value[:, order], *norm, second.hidden_weight[order]),
    )


def _best(gain: np.ndarray) -> np.ndarray:
    """For each row, the column it is matched with, so that the sum of gains is largest."""
    order: np.ndarray = linear_sum_assignment(gain, maximize=True)[1]
    return order
