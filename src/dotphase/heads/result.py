"""The result of `dotphase.heads.shares`: `HeadShares`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description
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
    coverage : fraction of entries in groups of two or more blocks of sentences, from which the
        semantic share and the share of both together are measured
    patterns : mean weights on the previous, same and first position and on duplicates of the
        token; entropy over that of uniform attention
    uniform : the same patterns of uniform attention over the allowed keys
    distance : mean total variation distance to the best positional matrix and to the best
        content-only kernel, both fitted to other sentences
    log_variance : variance of log attention, the mean of every row removed
    sentences : number of sentences

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(2, 6, 6)) + np.zeros((50, 1, 1, 1))
    >>> dp.heads.shares(scores, scores=True).verdict.tolist()
    ['positional', 'positional']
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
    seconds: float = field(default=0.0)

    @property
    def verdict(self) -> np.ndarray:
        """Mechanism of each head: positional, semantic, mixed or neither.

        Without a semantic share (no tokens given): positional, or "not positional".

        A mechanism counts if it explains a tenth of the variance that the other one does not
        explain, and its permutation test rejects chance at the level of 5%. If positions and tokens
        explain the same variance only, the verdict is "mixed".
        """
        shared = -np.minimum(np.nan_to_num(self.interaction), 0)
        share = np.nan_to_num([self.positional, self.semantic])
        rejected = np.stack([self.p_value[name] <= LEVEL for name in ("positional", "semantic")])
        large = rejected & (share >= SMALLEST_SHARE)
        alone = rejected & (share - shared >= SMALLEST_SHARE)
        mechanism = [alone[0] & ~alone[1], alone[1] & ~alone[0], large.any(axis=0)]
        names = ["positional", "semantic", "mixed", "not positional"]
        return np.select([*mechanism, np.isnan(self.semantic)], names, "neither")

    @property
    def description(self) -> Description:
        """Number of heads with each verdict, and a sentence for each head."""
        names, counts = np.unique(self.verdict, return_counts=True)
        kinds = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        text = f"{self.positional.size} heads on {self.sentences} sentences: {kinds}"
        notes = [self._describe(at) for at in np.ndindex(self.positional.shape)]
        if np.isnan(self.semantic).all():
            reason = "no pair recurs" if "semantic" in self.coverage else "no tokens given"
            notes.append(f"{reason}: semantic share not measured")
        return Description(text, notes=tuple(notes))

    def _describe(self, at: tuple[int, ...]) -> str:
        name = f"layer {at[0]}, head {at[1]}" if len(at) == 2 else f"head {at[0]}"
        parts = [
            f"{label} {getattr(self, label)[at]:.3f} ± {self.stderr[label][at]:.3f}"
            for label in SHARES
            if np.isfinite(getattr(self, label)[at])
        ]
        ratios = {
            label: values[at] / self.uniform[label]
            for label, values in self.patterns.items()
            if label != "entropy" and self.uniform[label] > 0 and np.isfinite(values[at])
        }
        best = max(ratios, key=lambda label: ratios[label], default=None)
        note = f"; {ratios[best]:.1f} times uniform: {best}" if best and ratios[best] > 2 else ""
        return f"{name}: {self.verdict[at]} ({', '.join(parts)}{note})"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers by name, and the list of heads, ready for JSON."""
        heads = [
            {**dict(zip(self._axes, at, strict=True)), "verdict": str(self.verdict[at])}
            | {name: float(getattr(self, name)[at]) for name in SHARES}
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
        sizes = zip(self._axes, self.positional.shape, strict=True)
        coordinates = {name: np.arange(size) for name, size in sizes}
        attributes = provenance(None, sentences=self.sentences, seconds=self.seconds)
        dataset = xr.Dataset(data, coordinates, attributes)
        for label, variable in dataset.variables.items():
            name = SHARES.get(str(label), str(label).replace("_", " "))
            variable.attrs.update(long_name=name, units="1")
        return dataset
