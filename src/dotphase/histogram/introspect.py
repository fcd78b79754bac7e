"""What a trained network does: its attention, its answers, and a score for each mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from dotphase.errors import InvalidInput
from dotphase.histogram.network import Network, Output, apply, in_single_precision
from dotphase.histogram.task import count, parse

#: Sequences that scores of attention are taken over.
JUDGED = 2000


@dataclass(frozen=True)
class Statistics:
    """How a network attends and answers, over many sequences.

    With A_ij the weight that the token at position i puts on position j. The weight of a token on
    itself is left out of the variances and scores: it is both the same position and an equal token.

    Attributes
    ----------
    input_variance : variance of A_ij across sequences, averaged over the positions; zero if
        attention does not depend on the tokens
    position_variance : variance over the positions of the mean of A_ij across sequences; zero
        if attention does not depend on where tokens are
    positional_score : position_variance/(position_variance + input_variance), in [0, 1]
    self_weight : mean weight of a token on itself
    equal_weight, other_weight : mean weight of a token on one other token of the same symbol,
        and on one of another symbol
    semantic_score : mean over symbols of ``|e - o|/(e + o)``, with e and o the equal and other
        weight of that symbol; in [0, 1], and as large for symbols that look away from their equals
    accuracy : share of tokens counted right
    accuracy_by_count : the same for tokens that occur once, twice, ...; not a number where
        there were none
    tokens_by_count : how many there were of each

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> found = dp.histogram.statistics(dp.histogram.shipped("positional"), split.held_out)
    >>> print(f"{found.positional_score:.2f} {found.semantic_score:.2f}")
    1.00 0.00
    """

    input_variance: float
    position_variance: float
    positional_score: float
    self_weight: float
    equal_weight: float
    other_weight: float
    semantic_score: float
    accuracy: float
    accuracy_by_count: tuple[float, ...]
    tokens_by_count: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_apply = jax.jit(apply)


@in_single_precision
def _run(network: Network, sequences: Int[np.ndarray, "n length"]) -> Output:
    if network.tokens.ndim != 2:
        raise InvalidInput("network", network, "must be one network; see dp.histogram.select")
    return jax.tree.map(np.asarray, _apply(network, np.asarray(sequences, np.int32)))


def _run_typed(network: Network, text: str) -> Output:
    return _run(network, parse(text, network.symbols, network.length)[None])


def attention(network: Network, text: str) -> Float[np.ndarray, "length length"]:
    """The attention matrix for a typed sequence; row i is where token i looks.

    Examples
    --------
    >>> weights = dp.histogram.attention(dp.histogram.shipped("semantic"), "BBCCDDBBBB")
    >>> print(f"{weights[0, 1]:.2f} {weights[0, 2]:.2f}")
    0.15 0.03
    """
    return _run_typed(network, text).attention[0]


def predict(network: Network, text: str) -> Int[np.ndarray, " length"]:
    """The counts that the network gives for a typed sequence.

    Examples
    --------
    >>> dp.histogram.predict(dp.histogram.shipped("semantic"), "AABBCCDDDD")
    array([2, 2, 2, 2, 2, 2, 4, 4, 4, 4])
    """
    return _run_typed(network, text).logits[0].argmax(axis=-1)


def attention_maps(
    networks: Sequence[Network], texts: Sequence[str]
) -> Float[np.ndarray, "networks sequences length length"]:
    """Attention matrices of several networks for several typed sequences.

    Examples
    --------
    >>> networks = [dp.histogram.shipped(name) for name in ("semantic", "positional")]
    >>> dp.histogram.attention_maps(networks, ["BBCCDDBBBB"]).shape
    (2, 1, 10, 10)
    """
    return np.stack([[attention(network, text) for text in texts] for network in networks])


def statistics(network: Network, sequences: Int[np.ndarray, "n length"]) -> Statistics:
    """Accuracy per count over all sequences given, scores of attention over the first 2000.

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> found = dp.histogram.statistics(dp.histogram.shipped("semantic"), split.held_out)
    >>> found.accuracy > 0.99
    True
    """
    sequences = np.asarray(sequences)
    counts = count(sequences)
    logits, weights = _run(network, sequences)
    right = logits.argmax(axis=-1) == counts
    by_count = [right[counts == number] for number in range(1, network.length + 1)]
    sequences, weights = sequences[:JUDGED], weights[:JUDGED].astype(np.float64)
    own = np.eye(network.length, dtype=bool)
    equal = sequences[:, :, None] == sequences[:, None, :]
    across_inputs = float(weights.var(axis=0)[~own].mean())
    across_positions = float(weights.mean(axis=0)[~own].var())
    symbols = [(sequences == symbol)[:, :, None] for symbol in range(network.symbols)]
    contrasts = [_contrast(weights, equal & ~own & some, ~equal & some) for some in symbols]
    return Statistics(
        input_variance=across_inputs,
        position_variance=across_positions,
        positional_score=_share(across_positions, across_inputs),
        self_weight=_mean(weights, np.broadcast_to(own, weights.shape)),
        equal_weight=_mean(weights, equal & ~own),
        other_weight=_mean(weights, ~equal),
        semantic_score=float(np.nanmean(contrasts)) if np.isfinite(contrasts).any() else np.nan,
        accuracy=float(right.mean()),
        accuracy_by_count=tuple(float(some.mean()) if some.size else np.nan for some in by_count),
        tokens_by_count=tuple(some.size for some in by_count),
    )


def _mean(weights: np.ndarray, where: np.ndarray) -> float:
    return float(weights[where].mean()) if where.any() else float("nan")


def _contrast(weights: np.ndarray, equal: np.ndarray, other: np.ndarray) -> float:
    """|e - o|/(e + o) of the mean weights e on equal and o on other tokens."""
    e, o = _mean(weights, equal), _mean(weights, other)
    return abs(e - o) / (e + o)


def _share(part: float, rest: float) -> float:
    """part/(part + rest); a half where both are zero."""
    return part / (part + rest) if part + rest > 0 else 0.5
