"""Shares of the variance of log attention by mechanism: `shares`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from dotphase.config.settings import replace_fields
from dotphase.heads import source
from dotphase.heads.collect import PATTERN_NAMES, Collected, collect
from dotphase.heads.permutations import distances, permutation_test
from dotphase.heads.result import SHARES, HeadShares
from dotphase.heads.source import ShareSettings
from dotphase.heads.tables import NO_VARIANCE, explained_variance
from dotphase.numerics.statistics import jackknife_error
from dotphase.runtime.precision import use_precision


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
        parts = [source.as_array(source.TOKENS, part) for part in (tokens, key_tokens)
                 if part is not None]  # fmt: skip
        symbols = np.unique(np.concatenate([part.reshape(-1) for part in parts])).size
        chosen = replace(chosen, symbols=max(symbols, 1))
    with use_precision(np.float32):
        chunks = source.chunks(attention, tokens, mask, key_tokens, chosen)
        collected = collect(chunks, chosen)
        sample = collected.sample()
        null, p_value = permutation_test(sample, chosen.nulls, chosen.seed)
        distance = distances(sample)
    values, coverage = _factor_shares(collected)
    stderr = {name: jackknife_error(value[1:]) for name, value in values.items()}
    # Patterns are NaN where no row has them.
    rows = np.where(collected.rows > 0, collected.rows, np.nan)
    patterns = dict(zip(PATTERN_NAMES, collected.weights / rows[:, None], strict=True))
    groups = {"stderr": stderr, "p_value": p_value, "null": null, "distance": distance}
    shape = collected.shape
    arrays: dict[str, Any] = {name: values[name][0].reshape(shape) for name in SHARES}
    for name, group in (groups | {"patterns": patterns}).items():
        arrays[name] = {key: np.reshape(value, shape) for key, value in group.items()}
    return HeadShares(
        **arrays,
        coverage=coverage,
        uniform=dict(zip(PATTERN_NAMES, (collected.uniform / rows).tolist(), strict=True)),
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
        usable = (counts > 0).sum(axis=0) > 1  # in two or more blocks
        coverage[name] = float(counts[:, usable].sum() / entries.sum())
        if usable.any():
            own = square[usable].sum(axis=0) / counts[:, usable].sum()
            scale = np.where(uniform, 1, variance * own / np.where(uniform, 1, variance[0]))
            parts[name] = np.where(uniform, 0, explained_variance(counts, sums) / scale)
    alone = parts["positional"] + np.nan_to_num(parts["semantic"])
    interaction = parts.pop("both") - alone
    rest = 1 - alone - np.nan_to_num(interaction)
    return parts | {"interaction": interaction, "rest": rest}, coverage
