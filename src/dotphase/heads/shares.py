"""Shares of the variance of log attention by mechanism: `shares` and its result `HeadShares`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description
from dotphase.config.settings import replace_fields
from dotphase.heads.collect import PATTERN_NAMES, Collected, collect
from dotphase.heads.groups import NO_VARIANCE, distances, explained_variance, permutation_test
from dotphase.heads.source import TOKENS, ShareSettings, as_array, chunks
from dotphase.numerics.statistics import jackknife_error
from dotphase.runtime.precision import use_precision
from dotphase.storage.labels import add_default_labels
from dotphase.storage.provenance import provenance
from dotphase.storage.results import Result

if TYPE_CHECKING:
    import xarray as xr

#: The four shares, with their long names.
SHARES = {
    "positional": "share explained by the pair of positions",
    "semantic": "share explained by the pair of tokens",
    "interaction": "share explained by positions and tokens together only",
    "rest": "share explained by neither",
}
#: Smallest share that counts as a mechanism, and the level of its test.
SMALLEST_SHARE, LEVEL = 0.1, 0.05


@dataclass(frozen=True, eq=False, repr=False)
class HeadShares(Result):
    """Shares of the variance of log attention by mechanism, one for each head.

    All arrays have the shape ``(head,)``, or ``(layer, head)`` if the attention has layers.

    Attributes
    ----------
    positional, semantic : shares that the pair of positions and the pair of tokens explain
    interaction : share that both together explain beyond the sum of these two; negative if
        positions determine tokens in part, since both then explain the same variance
    rest : one minus the three others
    stderr : standard errors of the four shares, from a jackknife over blocks of sentences
    p_value : of no positional and of no semantic share, from permutations
    null : mean shares after the permutations, and their standard deviations ``..._spread``
    coverage : fraction of entries whose group occurs in two or more blocks, and is thus measured
    patterns : mean weights on the previous, same and first position and on duplicates of the
        token; entropy over that of uniform attention
    uniform : the same patterns of uniform attention over the allowed keys
    distance : mean total variation distance to the best positional matrix and to the best
        content-only kernel, both fitted to other sentences
    log_variance : variance of log attention, the mean of every row removed
    sentences : number of sentences

    Examples
    --------
    >>> dp.heads.shares([[[[0.9, 0.1], [0.2, 0.8]]]] * 9).verdict.shape
    (1,)
    """

    positional: Float[np.ndarray, "*heads"]
    semantic: Float[np.ndarray, "*heads"]
    interaction: Float[np.ndarray, "*heads"]
    rest: Float[np.ndarray, "*heads"]
    stderr: dict[str, Float[np.ndarray, "*heads"]]
    p_value: dict[str, Float[np.ndarray, "*heads"]]
    null: dict[str, Float[np.ndarray, "*heads"]]
    coverage: dict[str, float]
    patterns: dict[str, Float[np.ndarray, "*heads"]]
    uniform: dict[str, float]
    distance: dict[str, Float[np.ndarray, "*heads"]]
    log_variance: Float[np.ndarray, "*heads"]
    sentences: int
    seconds: float = 0.0

    @property
    def verdict(self) -> np.ndarray:
        """Mechanism of each head: positional, semantic, mixed or neither; or "not positional".

        A mechanism counts if it explains a tenth of the variance that the other one does not
        explain, and its permutation test rejects chance at the level of 5%. If positions and tokens
        explain the same variance only, the verdict is "mixed".
        """
        shared = np.minimum(np.nan_to_num(self.interaction), 0)
        share = np.nan_to_num([self.positional, self.semantic])
        rejected = np.stack([self.p_value["positional"], self.p_value["semantic"]]) <= LEVEL
        large, alone = (rejected & (part >= SMALLEST_SHARE) for part in (share, share + shared))
        mechanism = [alone[0] & ~alone[1], alone[1] & ~alone[0], large.any(axis=0)]
        names = ["positional", "semantic", "mixed", "not positional"]
        return np.select([*mechanism, np.isnan(self.semantic)], names, "neither")

    @property
    def description(self) -> Description:
        """Number of heads with each verdict, and a sentence for each head."""
        names, counts = np.unique(self.verdict, return_counts=True)
        kinds = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        notes = [self._describe(at) for at in np.ndindex(self.positional.shape)]
        if np.isnan(self.semantic).all():
            reason = "no pair recurs" if "semantic" in self.coverage else "no tokens given"
            notes.append(f"{reason}: semantic share not measured")
        title = f"{self.positional.size} heads on {self.sentences} sentences: {kinds}"
        return Description(title, notes=tuple(notes))

    def _describe(self, at: tuple[int, ...]) -> str:
        title = ", ".join(map("{} {}".format, self._axes, at))
        numbers = {name: (getattr(self, name)[at], self.stderr[name][at]) for name in SHARES}
        parts = [f"{name} {x:.3f} ± {e:.3f}" for name, (x, e) in numbers.items() if np.isfinite(x)]
        ratios = [(self.patterns[label][at] / self.uniform[label], label) for label in self.uniform]
        ratio, label = max((pair for pair in ratios if pair[0] > 2), default=(0, ""))
        note = f"; {ratio:.1f} times uniform: {label}" if label else ""
        return f"{title}: {self.verdict[at]} ({', '.join(parts)}{note})"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers by name, and the list of heads, ready for JSON."""
        columns = {"verdict": self.verdict, **{name: getattr(self, name) for name in SHARES}}
        heads = [
            dict(zip(self._axes, at, strict=True))
            | {name: column[at].item() for name, column in columns.items()}
            | {"stderr": {name: float(self.stderr[name][at]) for name in SHARES}}
            for at in np.ndindex(self.positional.shape)
        ]
        return {**vars(self), "verdict": self.verdict, "heads": heads}

    @property
    def _axes(self) -> tuple[str, ...]:
        return ("layer", "head")[-self.positional.ndim :]

    def dataset(self) -> xr.Dataset:
        """Return all numbers with the dimensions ``layer`` and ``head``."""
        import xarray as xr

        variables = {name: getattr(self, name) for name in (*SHARES, "log_variance", "verdict")}
        variables |= self.patterns
        for group in ("stderr", "p_value", "null", "distance", "uniform", "coverage"):
            variables |= {f"{name}_{group}": value for name, value in getattr(self, group).items()}
        data = {name: (self._axes[: np.ndim(value)], value) for name, value in variables.items()}
        coordinates = dict(zip(self._axes, map(np.arange, self.positional.shape), strict=True))
        attributes = provenance(None, sentences=self.sentences, seconds=self.seconds)
        dataset = xr.Dataset(data, coordinates, attributes)
        for name, long_name in SHARES.items():
            dataset[name].attrs.update(long_name=long_name, units="1")
        return add_default_labels(dataset)


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

    Products of different blocks of independent sentences estimate the squares without bias; a share
    near zero can come out negative. Groups must recur in another block: see ``coverage``. If no
    (i, j, a, b) does, the interaction is NaN, and part of the rest.

    Parameters
    ----------
    attention : array or iterator
        Weights of shape (sentence, head, query, key) or (sentence, layer, head, query, key), from
        NumPy, JAX, PyTorch or any library with DLPack. For more sentences than fit into memory: an
        iterator of tuples of the first four arguments.
    tokens : (sentence, position) array of integers, optional
        Without tokens only the positional share is measured.
    mask : array of bool, optional
        True for real tokens, (sentence, position), or for allowed keys, (query, key) or
        (sentence, query, key). Unless it has queries, keys are also masked whose weight is exactly
        zero, or whose score is below -1000, in all heads.
    key_tokens : (sentence, position) array of integers, optional
        Tokens of keys, if not those of queries: for an induction head the token before the key.
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
    if tokens is not None and chosen.symbols is None:
        pair = (tokens, tokens if key_tokens is None else key_tokens)
        names = [np.unique(as_array(TOKENS, part)) for part in pair]
        chosen = replace(chosen, symbols=max(np.union1d(*names).size, 1))
    with use_precision(np.float32):
        collected = collect(chunks(attention, tokens, mask, key_tokens, chosen), chosen)
        sample = collected.sample()
        null, p_value = permutation_test(sample, chosen.nulls, chosen.seed)
        distance = distances(sample)
    values, coverage = _factor_shares(collected)
    # Patterns are NaN where no row has them.
    weights = collected.weights / np.where(collected.rows > 0, collected.rows, np.nan)[:, None]
    stderr = {name: jackknife_error(value[1:]) for name, value in values.items()}
    patterns = dict(zip(PATTERN_NAMES, weights[:, :-1], strict=True))
    groups = {"stderr": stderr, "p_value": p_value, "null": null, "distance": distance}
    shape = collected.shape
    arrays: dict[str, Any] = {name: values[name][0].reshape(shape) for name in SHARES}
    for name, group in (groups | {"patterns": patterns}).items():
        arrays[name] = {key: np.reshape(value, shape) for key, value in group.items()}
    return HeadShares(
        **arrays,
        coverage=coverage,
        uniform=dict(zip(PATTERN_NAMES, weights[:, -1].tolist(), strict=True)),
        log_variance=(collected.squares.sum(axis=0) / collected.entries.sum()).reshape(shape),
        sentences=collected.sentences,
        seconds=time.perf_counter() - start,
    )


def _factor_shares(collected: Collected) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Shares of all sentences and without each block, and coverage by factor.

    A share is relative to the variance of the entries whose groups recur.
    """
    used = collected.entries > 0
    squares, entries = collected.squares[used], collected.entries[used, None]
    total, count = squares.sum(axis=0), entries.sum()
    variance = np.concatenate([total[None] / count, (total - squares) / (count - entries)])
    uniform = variance[0] <= NO_VARIANCE
    parts = {name: np.full_like(variance, np.nan) for name in ("positional", "semantic", "both")}
    coverage = {}
    for name, (counts, sums, square) in collected.factors().items():
        counts, square = counts[..., 0], square[0]
        usable = (counts > 0).sum(axis=0) > 1  # in two or more blocks
        coverage[name] = float(counts[:, usable].sum() / count)
        if usable.any():
            own = square[usable].sum(axis=0) / counts[:, usable].sum()
            scale = np.where(uniform, 1, variance * own / np.where(uniform, 1, variance[0]))
            explained = explained_variance(counts[used], sums[used])
            parts[name] = np.where(uniform, 0, explained / scale)
    # What is not measured at all is part of the rest.
    alone = parts["positional"] + (parts["semantic"] if coverage.get("semantic") else 0)
    interaction = parts.pop("both") - alone
    rest = 1 - alone - (interaction if coverage.get("both") else 0)
    return parts | {"interaction": interaction, "rest": rest}, coverage
