"""Attention and predictions of a trained network, and a score for each mechanism."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from dotphase.errors import InvalidInput
from dotphase.histogram.network import Network, Output, apply, in_single_precision
from dotphase.histogram.task import count, parse

#: Largest number of sequences in the scores of attention.
SCORED = 2000


@dataclass(frozen=True)
class Statistics:
    """Statistics of attention and accuracy over many sequences.

    A_ij is the attention weight of the token at position i on position j. The weight of a token on
    itself is not part of variances and scores: it is both the same position and an equal token.

    Attributes
    ----------
    input_variance : variance of A_ij across sequences, averaged over the positions; zero if
        attention does not depend on the tokens
    position_variance : variance over the positions of the mean of A_ij across sequences; zero
        if attention does not depend on the positions
    positional_score : position_variance/(position_variance + input_variance), in [0, 1]
    self_weight : mean weight of a token on itself
    equal_weight, other_weight : mean weight of a token on one other token of the same symbol,
        and on one of another symbol
    semantic_score : mean over symbols of ``|e - o|/(e + o)``, with e and o the equal and other
        weight of that symbol; in [0, 1], whichever of the two weights is larger
    accuracy : share of tokens with the right count
    accuracy_by_count : accuracy for tokens that occur once, twice, ...; NaN without such tokens
    tokens_by_count : number of tokens that occur once, twice, ...

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> scores = dp.histogram.statistics(dp.histogram.shipped("positional"), split.held_out)
    >>> print(f"{scores.positional_score:.2f} {scores.semantic_score:.2f}")
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
        """Return the statistics as plain numbers, ready for JSON."""
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
    """Return the attention matrix for a typed sequence; row i has the weights of token i.

    Examples
    --------
    >>> weights = dp.histogram.attention(dp.histogram.shipped("semantic"), "BBCCDDBBBB")
    >>> print(f"{weights[0, 1]:.2f} {weights[0, 2]:.2f}")
    0.15 0.03
    """
    return _run_typed(network, text).attention[0]


def predict(network: Network, text: str) -> Int[np.ndarray, " length"]:
    """Return the predicted counts for a typed sequence.

    Examples
    --------
    >>> dp.histogram.predict(dp.histogram.shipped("semantic"), "AABBCCDDDD")
    array([2, 2, 2, 2, 2, 2, 4, 4, 4, 4])
    """
    return _run_typed(network, text).logits[0].argmax(axis=-1)


def attention_maps(
    networks: Sequence[Network], texts: Sequence[str]
) -> Float[np.ndarray, "networks sequences length length"]:
    """Return the attention matrices of several networks for several typed sequences.

    Examples
    --------
    >>> networks = [dp.histogram.shipped(name) for name in ("semantic", "positional")]
    >>> dp.histogram.attention_maps(networks, ["BBCCDDBBBB"]).shape
    (2, 1, 10, 10)
    """
    return np.stack([[attention(network, text) for text in texts] for network in networks])


def statistics(network: Network, sequences: Int[np.ndarray, "n length"]) -> Statistics:
    """Measure accuracy over all sequences, and scores of attention over the first 2000.

    Examples
    --------
    >>> split = dp.histogram.draw(dp.histogram.Task(samples=200))
    >>> scores = dp.histogram.statistics(dp.histogram.shipped("semantic"), split.held_out)
    >>> scores.accuracy > 0.99
    True
    """
    sequences = np.asarray(sequences)
    counts = count(sequences)
    logits, weights = _run(network, sequences)
    correct = logits.argmax(axis=-1) == counts
    by_count = [correct[counts == number] for number in range(1, network.length + 1)]
    sequences, weights = sequences[:SCORED], weights[:SCORED].astype(np.float64)
    diagonal = np.eye(network.length, dtype=bool)
    equal = sequences[:, :, None] == sequences[:, None, :]
    across_inputs = float(weights.var(axis=0)[~diagonal].mean())
    across_positions = float(weights.mean(axis=0)[~diagonal].var())
    symbols = [(sequences == symbol)[:, :, None] for symbol in range(network.symbols)]
    contrasts = [_contrast(weights, equal & ~diagonal & rows, ~equal & rows) for rows in symbols]
    return Statistics(
        input_variance=across_inputs,
        position_variance=across_positions,
        positional_score=_share(across_positions, across_inputs),
        self_weight=_mean(weights, np.broadcast_to(diagonal, weights.shape)),
        equal_weight=_mean(weights, equal & ~diagonal),
        other_weight=_mean(weights, ~equal),
        semantic_score=float(np.nanmean(contrasts)) if np.isfinite(contrasts).any() else np.nan,
        accuracy=float(correct.mean()),
        accuracy_by_count=tuple(float(part.mean()) if part.size else np.nan for part in by_count),
        tokens_by_count=tuple(part.size for part in by_count),
    )


def _mean(weights: np.ndarray, mask: np.ndarray) -> float:
    """Mean of the weights under a mask; NaN if it is empty."""
    return float(weights[mask].mean()) if mask.any() else float("nan")


def _contrast(weights: np.ndarray, equal: np.ndarray, other: np.ndarray) -> float:
    """``|e - o|/(e + o)`` of the mean weights e on equal and o on other tokens."""
    e, o = _mean(weights, equal), _mean(weights, other)
    return abs(e - o) / (e + o)


def _share(part: float, rest: float) -> float:
    """``part/(part + rest)``; a half if both are zero."""
    return part / (part + rest) if part + rest > 0 else 0.5
