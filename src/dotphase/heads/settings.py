"""Settings of `dotphase.heads.shares`."""

from __future__ import annotations

from dataclasses import dataclass

from dotphase.config import validation
from dotphase.config.parameters import Flag

#: Most different tokens.
MAX_SYMBOLS = 2**20


@dataclass(frozen=True)
class ShareSettings:
    """Settings of `shares`.

    Attributes
    ----------
    scores : True if the numbers are scores before the softmax instead of attention weights
    floor : weights below this are raised to it before the logarithm
    diagonal : False leaves out the weight of a token on itself, which is both the same position
        and an equal token
    symbols : number of different tokens; counted if not given, except in a stream
    table_bytes : memory of the sums of each kind of group
    blocks : number of blocks of sentences, for the errors
    nulls : number of permutations of each kind
    seed : of the permutations

    Examples
    --------
    >>> dp.heads.ShareSettings(nulls=19).nulls
    19
    """

    scores: bool = False
    floor: float = 0.0
    diagonal: bool = True
    symbols: int | None = None
    table_bytes: int = 2**28
    blocks: int = 16
    nulls: int = 39
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("scores", "diagonal"):
            Flag().check(name, getattr(self, name))
        validation.number("floor", self.floor, at_least=0, at_most=0.1)
        if self.symbols is not None:
            validation.integer("symbols", self.symbols, at_least=1, at_most=MAX_SYMBOLS)
        for name, least in (("table_bytes", 1), ("blocks", 2), ("nulls", 19), ("seed", 0)):
            validation.integer(name, getattr(self, name), at_least=least)
