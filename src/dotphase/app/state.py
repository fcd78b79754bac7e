"""A point of the page: its parameters, from and to the query of an address, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dotphase._numerics.parameters import Number, Parameter, Slider, Whole
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.model.mixing import MIXING
from dotphase.model.named import MODELS, PAPER

_MODEL = MODELS[PAPER].parameters
#: The numbers of the page: alpha, and those of the model that have a slider.
NUMBERS = {
    "alpha": Parameter(
        "alpha", Number(above=0), 1.5, "Sentences per dimension n/d.", Slider("α", 0.05, 5.0, 0.01)
    ),
    **{name: parameter for name, parameter in _MODEL.items() if parameter.slider},
}
#: Decimals kept of every number, so that equal points have equal names.
DECIMALS = 6
#: Longest text taken for a number or a name.
LONGEST = 40


def sliders() -> list[dict[str, Any]]:
    """What the page makes its sliders from."""
    return [
        {"name": name, "words": one.help.rstrip("."), **asdict(one.slider)}
        for name, one in NUMBERS.items()
        if one.slider
    ]


@dataclass(frozen=True)
class Point:
    """Where the page is: the parameters of the model and alpha.

    Attributes
    ----------
    alpha, omega, sigma, ridge : as everywhere
    mixing : "standard", "other", or "A_11,A_22" for the matrix with rows that sum to 1
    """

    alpha: float = NUMBERS["alpha"].default
    omega: float = _MODEL["omega"].default
    sigma: float = _MODEL["sigma"].default
    ridge: float = _MODEL["ridge"].default
    mixing: str = _MODEL["mixing"].default

    @property
    def matrix(self) -> list[list[float]]:
        """The positional attention matrix A."""
        if self.mixing in MIXING:
            return [list(row) for row in MIXING[self.mixing]]
        first, second = (float(part) for part in self.mixing.split(","))
        return [[first, round(1 - first, DECIMALS)], [round(1 - second, DECIMALS), second]]

    def model(self) -> Model:
        """The model of this point."""
        numbers = {name: getattr(self, name) for name in NUMBERS if name in _MODEL}
        return MODELS[PAPER].build(**numbers, mixing=self.matrix)

    def at(self, **changes: Any) -> Point:
        """The same point with some parameters changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The parameters by name."""
        return asdict(self)


def read_point(query: Mapping[str, str]) -> Point:
    """The point that a query describes; what it leaves out is the default."""
    numbers = {
        name: bounded(name, query[name], one.slider.low, one.slider.high)
        for name, one in NUMBERS.items()
        if name in query and one.slider
    }
    return Point(**numbers, mixing=_mixing(query.get("mixing", Point.mixing)))


def bounded(field: str, text: str, low: float, high: float) -> float:
    """A number within bounds from text."""
    value = Number(at_least=low, at_most=high).read(field, _short(field, text))
    return round(value, DECIMALS)


def whole(field: str, text: str, low: int, high: int) -> int:
    """A whole number within bounds from text."""
    return Whole(low, high).read(field, _short(field, text))


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
