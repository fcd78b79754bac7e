"""Shares of the variance of log attention by mechanism: `shares`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from dotphase.config.settings import replace_fields
from dotphase.heads import source
from dotphase.heads.collect import Collected, collect
from dotphase.heads.measure import PATTERN_NAMES
from dotphase.heads.permutations import Sample, distances, permutation_null
from dotphase.heads.result import SHARES, HeadShares
from dotphase.heads.settings import ShareSettings
from dotphase.heads.tables import explained_variance, usable_groups
from dotphase.numerics.statistics import jackknife_error
from dotphase.runtime.precision import use_precision

#: Variance of log attention below which a head is uniform: it has no share but the rest.
NO_VARIANCE = 1e-10


def shares(
    attention: Any,
    tokens: Any = None,
    mask: Any = None,
    key_tokens: Any = None,
    settings: ShareSettings | None = None,
    **changes: Any,
) -> HeadShares:
    """Divide the variance of log attention of each head into shares of mechanisms.

    Let x be log attention minus its mean over the allowed keys of the row, and ``V = E[x^2]`` over
    all entries: a sentence, a query at position i with token a, a key at position j with token b.

        positional = E[E[x | i, j]^2]/V          semantic = E[E[x | a, b]^2]/V
        interaction = E[E[x | i, j, a, b]^2]/V - positional - semantic
        rest = 1 - E[E[x | i, j, a, b]^2]/V

    Squares of means are estimated from products of different blocks of sentences, so that finite
    data do not raise them; a share near zero can come out negative. Groups must recur in another
    block: see ``coverage``. If no (i, j, a, b) does, the interaction is NaN, and the rest includes
    it. A head with scores ``g(a, b)`` and independent tokens has a semantic share of ``1 - 1/L``,
    because the mean of a row of L keys depends on all of its tokens.

    Parameters
    ----------
    attention : array or iterator
        Weights of shape (sentence, head, query, key) or (sentence, layer, head, query, key), from
        NumPy, JAX, PyTorch or any library with DLPack. For more sentences than fit into memory: an
        iterator of tuples with the first four arguments in this order.
    tokens : (sentence, position) array of integers, optional
        Without tokens only the positional share is measured.
    mask : array of bool, optional
        True for allowed keys: (query, key), (sentence, position) or (sentence, query, key).
        Without it, keys are masked whose weight is exactly zero, or whose score is below -1000,
        in all heads.
    key_tokens : (sentence, position) array of integers, optional
        Tokens of keys, if they are to differ from those of queries: for an induction head the
        token before the key.
    settings : ShareSettings, optional
    **changes
        Fields of `ShareSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> tokens, kernel = rng.integers(5, size=(400, 8)), rng.normal(size=(5, 5))
    >>> scores = kernel[tokens[:, None, :, None], tokens[:, None, None, :]]
    >>> heads = dp.heads.shares(scores, tokens, scores=True)
    >>> print(heads.verdict[0], f"{heads.semantic[0]:.1f}")
    semantic 0.9
    """
    start = time.perf_counter()
    chosen = replace_fields(settings or ShareSettings(), changes)
    if tokens is not None and chosen.symbols is None and not hasattr(attention, "__next__"):
        token_arrays = [part for part in (tokens, key_tokens) if part is not None]
        names = [np.unique(source.as_array(source.TOKENS, part)) for part in token_arrays]
        chosen = replace(chosen, symbols=max(np.unique(np.concatenate(names)).size, 1))
    with use_precision(np.float32):
        parts = source.chunks(attention, tokens, mask, key_tokens, chosen)
        collected = collect(parts, chosen)
        sample = collected.sample()
        test = _permutation_test(sample, chosen)
        distance = distances(sample)
    values, coverage = _factor_shares(collected)
    groups: dict[str, Any] = {
        **test,
        "stderr": {name: jackknife_error(value[1:]) for name, value in values.items()},
        "distance": distance,
        "patterns": _patterns(collected),
    }
    shape = collected.shape
    arrays: dict[str, Any] = {name: values[name][0].reshape(shape) for name in SHARES}
    for name, group in groups.items():
        arrays[name] = {key: np.reshape(value, shape) for key, value in group.items()}
    uniform = _ratio(collected.uniform, collected.rows).tolist()
    return HeadShares(
        **arrays,
        coverage=coverage,
        uniform=dict(zip(PATTERN_NAMES, uniform, strict=True)),
        log_variance=(collected.squares.sum(axis=0) / collected.entries.sum()).reshape(shape),
        sentences=collected.sentences,
        seconds=time.perf_counter() - start,
    )


def _factor_shares(collected: Collected) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Shares of all sentences and without each block, and coverage by factor.

    A share is relative to the variance of the entries whose groups recur.
    """
    squares, entries = collected.squares, collected.entries
    left_out = np.concatenate([np.zeros((1, squares.shape[1])), squares])
    counts_left = np.concatenate([[0], entries])[:, None]
    variance = (squares.sum(axis=0) - left_out) / (entries.sum() - counts_left)
    uniform = variance[0] <= NO_VARIANCE
    parts = {name: np.full_like(variance, np.nan) for name in ("positional", "semantic", "both")}
    coverage = {}
    for name, (counts, sums, square) in collected.factors().items():
        usable = usable_groups(counts)
        coverage[name] = float(counts[:, usable].sum() / entries.sum())
        if usable.any():
            own = square[usable].sum(axis=0) / counts[:, usable].sum()
            scale = variance * np.where(uniform, 1, own / np.where(uniform, 1, variance[0]))
            explained = explained_variance(counts, sums)
            parts[name] = np.where(uniform, 0, explained / np.where(uniform, 1, scale))
    alone = parts["positional"] + np.nan_to_num(parts["semantic"])
    interaction = parts["both"] - alone
    values = {name: parts[name] for name in ("positional", "semantic")}
    values |= {"interaction": interaction, "rest": 1 - alone - np.nan_to_num(interaction)}
    return values, coverage


def _permutation_test(sample: Sample, settings: ShareSettings) -> dict[str, dict[str, np.ndarray]]:
    """Means and spreads of permuted shares, and p-values by rank."""
    variance = np.where(sample.allowed[..., None], sample.x**2, 0).sum(axis=(0, 1, 2))
    variance = np.maximum(variance / sample.allowed.sum(), NO_VARIANCE)
    null: dict[str, np.ndarray] = {}
    p_value = {"semantic": np.full(variance.shape, np.nan)}
    for name, values in permutation_null(sample, settings.nulls, settings.seed).items():
        first, permuted = values[0] / variance, values[1:] / variance
        null |= {name: permuted.mean(axis=0), f"{name}_spread": permuted.std(axis=0, ddof=1)}
        # NaN compares false; a sample without recurring groups contradicts nothing.
        exceeded = 1 + (~(permuted < first)).sum(axis=0)
        p_value[name] = exceeded / (1 + settings.nulls)
    return {"null": null, "p_value": p_value}


def _patterns(collected: Collected) -> dict[str, np.ndarray]:
    values = _ratio(collected.weights, collected.rows[:, None])
    return dict(zip(PATTERN_NAMES, values, strict=True))


def _ratio(total: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mean of a pattern over the rows that have it; NaN if none has."""
    return np.where(rows > 0, total / np.maximum(rows, 1e-30), np.nan)
