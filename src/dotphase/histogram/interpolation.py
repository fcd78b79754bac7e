"""Loss between two solutions, on the straight line of parameters that joins them.

Different parameters can compute the same function: hidden units can be permuted, so can the
coordinates of LayerNorm (with the columns of V), and query and key can be rotated together. These
symmetries alone can cause a barrier on the straight line. The second solution is therefore also
aligned with the first by these symmetries. Embeddings stay as they are, because the constraint has
given a meaning to their two halves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.histogram.network import Network, distance, in_single_precision
from dotphase.histogram.task import Split
from dotphase.histogram.train import evaluate
from dotphase.storage.results import Result

#: Number of points on the line.
POINTS = 41
#: Largest number of rounds of matching.
MAX_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class LossBetween(Result):
    """Held-out loss and accuracy between two networks, with and without aligned symmetries.

    Attributes
    ----------
    position : points on the line, 0 at the first solution and 1 at the second
    loss, accuracy, aligned_loss, aligned_accuracy : values at each point
    distance, aligned_distance : length of the line

    Examples
    --------
    >>> network = dp.histogram.shipped("semantic")
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> dp.histogram.loss_between(network, network, split, points=3).barrier
    0.0
    """

    long_names: ClassVar[Mapping[str, str]] = {
        "position": "position on the line",
        "loss": "held-out loss",
        "accuracy": "held-out accuracy",
        "aligned_loss": "held-out loss, symmetries aligned",
        "aligned_accuracy": "held-out accuracy, symmetries aligned",
        "distance": "length of the line",
        "aligned_distance": "length of the line, symmetries aligned",
    }
    dimensions: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("position", "loss", "accuracy", "aligned_loss", "aligned_accuracy"), ("position",)
    )

    position: Float[np.ndarray, " points"] = field(repr=False)
    loss: Float[np.ndarray, " points"] = field(repr=False)
    accuracy: Float[np.ndarray, " points"] = field(repr=False)
    aligned_loss: Float[np.ndarray, " points"] = field(repr=False)
    aligned_accuracy: Float[np.ndarray, " points"] = field(repr=False)
    distance: float
    aligned_distance: float

    @property
    def barrier(self) -> float:
        """Highest loss on the line minus the higher loss of its two ends."""
        return _barrier(self.loss)

    @property
    def aligned_barrier(self) -> float:
        """Barrier after alignment."""
        return _barrier(self.aligned_loss)

    def to_dict(self) -> dict[str, float]:
        """Return barriers and distances, ready for JSON."""
        names = ("barrier", "aligned_barrier", "distance", "aligned_distance")
        return {name: getattr(self, name) for name in names}

    @property
    def description(self) -> Description:
        """Barriers and distances."""
        rows = tuple((name.replace("_", " "), f"{v:.6g}") for name, v in self.to_dict().items())
        return Description("held-out loss between two networks", rows)


def _barrier(loss: np.ndarray) -> float:
    return float(loss.max() - max(loss[0], loss[-1]))


def loss_between(
    first: Network, second: Network, split: Split, points: int = POINTS
) -> LossBetween:
    """Compute loss and accuracy on held-out sequences between two networks.

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> networks = [dp.histogram.shipped(name) for name in ("semantic", "positional")]
    >>> dp.histogram.loss_between(*networks, split, points=3).barrier > 1
    True
    """
    position = np.linspace(0.0, 1.0, validation.integer("points", points, at_least=2))
    ends = (second, align(first, second))
    curves = [curve for end in ends for curve in _evaluate_line(first, end, split, position)]
    return LossBetween(position, *curves, *(float(distance(first, end)) for end in ends))


@in_single_precision
def _evaluate_line(
    first: Network, second: Network, split: Split, position: np.ndarray
) -> np.ndarray:
    """Rows of losses and of accuracies."""

    def interpolate(t: float) -> Network:
        return jax.tree.map(lambda a, b: np.float32(1 - t) * a + np.float32(t) * b, first, second)

    data = split.held_out, split.held_out_counts
    return np.asarray([_evaluate(interpolate(t), *data) for t in position], np.float64).T


_evaluate = jax.jit(evaluate)


def align(first: Network, second: Network) -> Network:
    """Rewrite the second network close to the first without changing its function.

    Permutations of hidden units and of LayerNorm's coordinates are matched in turn until the
    distance no longer falls. Query and key are rotated by the orthogonal matrix that brings
    them closest.
    """
    second = jax.tree.map(np.asarray, second)
    u, _, vt = np.linalg.svd(second.query.T @ first.query + second.key.T @ first.key)
    rotated = (second.query @ (u @ vt), second.key @ (u @ vt))
    second = eqx.tree_at(lambda network: (network.query, network.key), second, rotated)
    closest = float(distance(first, second))
    for _ in range(MAX_ROUNDS):
        candidate = _match_coordinates(first, _match_hidden(first, second))
        candidate_distance = float(distance(first, candidate))
        if candidate_distance >= closest:
            break
        second, closest = candidate, candidate_distance
    return second


def _match_hidden(first: Network, second: Network) -> Network:
    """Permute the hidden units of the second network to match the first."""
    gain = first.hidden_weight.T @ second.hidden_weight
    gain = gain + np.outer(first.hidden_bias, second.hidden_bias)
    order = _assign(gain + first.output_weight @ second.output_weight.T)
    return eqx.tree_at(
        lambda network: (network.hidden_weight, network.hidden_bias, network.output_weight),
        second,
        (second.hidden_weight[:, order], second.hidden_bias[order], second.output_weight[order]),
    )


def _match_coordinates(first: Network, second: Network) -> Network:
    """Permute the LayerNorm coordinates of the second network to match the first."""
    gain = first.value.T @ second.value + first.hidden_weight @ second.hidden_weight.T
    gain = gain + np.outer(first.norm_scale, second.norm_scale)
    order = _assign(gain + np.outer(first.norm_shift, second.norm_shift))
    norm = (second.norm_scale[order], second.norm_shift[order])
    return eqx.tree_at(
        lambda network: (
            network.value, network.norm_scale, network.norm_shift, network.hidden_weight,
        ),
        second,
        (second.value[:, order], *norm, second.hidden_weight[order]),
    )  # fmt: skip


def _assign(gain: np.ndarray) -> np.ndarray:
    """Match each row with a column so that the sum of gains is largest."""
    order: np.ndarray = linear_sum_assignment(gain, maximize=True)[1]
    return order
