"""A point of the page: its parameters, from and to the query of an address, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from dotphase._numerics import validate
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.model.mixing import MIXING
from dotphase.model.paper import positional_semantic

#: What the page lets each number be: as far as the sliders reach.
RANGES = {
    "alpha": (0.05, 5.0),
    "omega": (0.0, 1.0),
    "sigma": (0.1, 1.5),
    "ridge": (1e-4, 1.0),
}
#: Decimals kept of every number, so that equal points have equal names.
DECIMALS = 6
#: Longest text taken for a number or a name.
LONGEST = 40


@dataclass(frozen=True)
class Point:
    """Where the page is: the parameters of the model and alpha.

    Attributes
    ----------
    alpha, omega, sigma, ridge : as everywhere
    mixing : "standard", "other", or "A_11,A_22" for the matrix with rows that sum to 1
    """

    alpha: float = 1.5
    omega: float = 0.3
    sigma: float = 0.5
    ridge: float = 0.01
    mixing: str = "standard"

    @property
    def matrix(self) -> list[list[float]]:
        """The positional attention matrix A."""
        if self.mixing in MIXING:
            return [list(row) for row in MIXING[self.mixing]]
        first, second = (float(part) for part in self.mixing.split(","))
        return [[first, round(1 - first, DECIMALS)], [round(1 - second, DECIMALS), second]]

    def model(self) -> Model:
        """The model of this point."""
        return positional_semantic(self.omega, self.sigma, self.ridge, self.matrix)

    def at(self, **changes: Any) -> Point:
        """The same point with some parameters changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The parameters by name."""
        return asdict(self)

    def to_query(self) -> str:
        """The query of a permanent link."""
        return urlencode({name: str(value) for name, value in self.to_dict().items()})


def read_point(query: Mapping[str, str]) -> Point:
    """The point that a query describes; what it leaves out is the default."""
    default = Point()
    numbers = {
        name: bounded(name, query[name], *RANGES[name]) if name in query else getattr(default, name)
        for name in RANGES
    }
    return Point(**numbers, mixing=_mixing(query.get("mixing", default.mixing)))


def bounded(field: str, text: str, low: float, high: float) -> float:
    """A number within bounds from text."""
    value = validate.number(field, _short(field, text), at_least=low, at_most=high)
    return round(value, DECIMALS)


def whole(field: str, text: str, low: int, high: int) -> int:
    """A whole number within bounds from text."""
    text = _short(field, text)
    value: object = int(text) if text.isascii() and text.isdecimal() else text
    return validate.whole(field, value, at_least=low, at_most=high)


def _mixing(text: str) -> str:
    if _short("mixing", text) in MIXING:
        return text
    allowed = "must be standard, other, or A_11,A_22 with two numbers from 0 to 1"
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidInput("mixing", text, allowed)
    try:
        pair = [bounded("mixing", part, 0.0, 1.0) for part in parts]
    except InvalidInput:
        raise InvalidInput("mixing", text, allowed) from None
    for name, matrix in MIXING.items():
        if pair == [matrix[0][0], matrix[1][1]]:
            return name
    return ",".join(f"{value:g}" for value in pair)


def _short(field: str, text: str) -> str:
    if len(text) > LONGEST:
        raise InvalidInput(field, text, f"must be at most {LONGEST} characters long")
    return text
