"""A point of the page: alpha and the parameters of a model, from and to a query, checked.

The page is about one family of models: the paper's, or one that ``dotphase explore --model`` names.
Its parameters are a table (`dotphase.model.named`), from which sliders and fields are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from dotphase.config.parameters import (
    REQUIRED,
    Integer,
    Number,
    Parameter,
    ParameterType,
    Slider,
    parse_assignments,
    table,
)
from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.model.load import find_model
from dotphase.model.mixing import MIXING
from dotphase.model.named import MODELS, PAPER, NamedModel

#: Decimals kept of every number, so that equal points have equal names.
DECIMALS = 6
#: Longest text taken for a number or a name.
LONGEST = 40
#: Columns of the student that the page offers.
RANKS = (1, 3)

ALPHA = Parameter(
    "alpha", Number(above=0), 1.5, "Sentences per dimension n/d.", Slider("α", 0.05, 5.0, 0.01)
)


class Entries(ParameterType):
    """A positional attention matrix of two tokens: its name, or "A_11,A_22" (rows sum to 1)."""

    name = "entries"
    label = "standard|other|A_11,A_22"
    allowed = "must be standard, other, or A_11,A_22 with two numbers from 0 to 1"

    def check(self, field: str, value: Any) -> str:
        """The name, or two numbers with a comma between."""
        text = _short(field, str(value))
        if text in MIXING:
            return text
        parts = text.split(",")
        if len(parts) != 2:
            raise InvalidInput(field, text, self.allowed)
        try:
            pair = [bounded(field, part, 0.0, 1.0) for part in parts]
        except InvalidInput:
            raise InvalidInput(field, text, self.allowed) from None
        for name, matrix in MIXING.items():
            if pair == [matrix[0][0], matrix[1][1]]:
                return name
        return ",".join(f"{value:g}" for value in pair)


def matrix_of(mixing: str) -> list[list[float]]:
    """The positional attention matrix A that an `Entries` stands for."""
    if mixing in MIXING:
        return [list(row) for row in MIXING[mixing]]
    first, second = (float(part) for part in mixing.split(","))
    return [[first, round(1 - first, DECIMALS)], [round(1 - second, DECIMALS), second]]


def _paper(mixing: str, **others: Any) -> Model:
    return MODELS[PAPER].build(**others, mixing=matrix_of(mixing))


def _paper_parameters() -> dict[str, Parameter]:
    known = MODELS[PAPER].parameters
    rank = replace(known["student_rank"], type=Integer(*RANKS), slider=Slider("r", *RANKS, 1))
    mixing = replace(known["mixing"], type=Entries(), help="Positional attention of the teacher.")
    return table(*(known[name] for name in ("omega", "sigma", "ridge")), mixing, rank)


@dataclass(frozen=True)
class Family:
    """What the page is about.

    Attributes
    ----------
    reference : name of the family, or ``FILE.py:NAME``
    named : how a model is made, and its parameters
    across : the parameter that is the vertical axis of the phase diagram, if there is one
    """

    reference: str
    named: NamedModel
    across: str | None

    @property
    def parameters(self) -> dict[str, Parameter]:
        """alpha, and what the models have."""
        return {"alpha": ALPHA, **self.named.parameters}

    @property
    def is_paper(self) -> bool:
        """Whether it is the paper's, for which the page has more to show."""
        return self.reference == PAPER

    def read(self, query: Mapping[str, str], default: Point) -> Point:
        """The point that a query describes; what it leaves out is the default."""
        given = {
            name: _read(one, query[name]) for name, one in self.parameters.items() if name in query
        }
        point = default.at(**given)
        if not self.is_paper:
            point.model()  # what a function of the user's refuses is said at once
        return point

    def controls(self, default: Point) -> list[dict[str, Any]]:
        """What the page makes its controls from."""
        values = default.to_dict()
        return [
            {"name": name, "words": one.help.rstrip("."), "default": values[name],
             **(asdict(one.slider) if one.slider else {"letter": name})}
            for name, one in self.parameters.items()
        ]  # fmt: skip


@lru_cache(maxsize=4)
def family(reference: str) -> Family:
    """The family of a name or of ``FILE.py:NAME``, whose file is run."""
    if reference == PAPER:
        named = NamedModel(_paper, _paper_parameters(), MODELS[PAPER].help)
        return Family(PAPER, named, "omega")
    found = find_model(reference)
    parameters = {name: _with_slider(one) for name, one in found.parameters.items()}
    swept = [name for name, one in parameters.items() if isinstance(one.type, Number)]
    return Family(reference, replace(found, parameters=parameters), swept[0] if swept else None)


def _with_slider(one: Parameter) -> Parameter:
    """A parameter with a slider: its own, that of the paper's of this name, or one around 1."""
    known = MODELS[PAPER].parameters.get(one.name)
    if one.slider or not isinstance(one.type, Number | Integer):
        return one
    if known and known.slider and isinstance(one.type, Number):
        return replace(one, slider=known.slider)
    value = 1.0 if one.default is REQUIRED else float(one.default)
    low, high = min(0.0, 2 * value), max(1.0, 2 * value)
    if isinstance(one.type, Integer):
        return replace(one, slider=Slider(one.name, int(low), int(max(high, 4)), 1))
    return replace(one, slider=Slider(one.name, low, high, round((high - low) / 100, DECIMALS)))


@dataclass(frozen=True, init=False)
class Point:
    """Where the page is: alpha and the parameters of the model.

    Attributes
    ----------
    alpha : as everywhere
    values : of the parameters, by name; for the paper's family omega, sigma, ridge, student_rank,
        and mixing, which is "standard", "other", or "A_11,A_22" for the matrix with rows that sum
        to 1
    reference : of the family
    """

    alpha: float
    values: tuple[tuple[str, Any], ...]
    reference: str

    def __init__(self, alpha: float = ALPHA.default, reference: str = PAPER, **given: Any) -> None:
        known = family(reference).named.parameters
        values = tuple((name, given.get(name, one.default)) for name, one in known.items())
        for name, value in (("alpha", alpha), ("values", values), ("reference", reference)):
            object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    @property
    def family(self) -> Family:
        """What it is a point of."""
        return family(self.reference)

    def model(self) -> Model:
        """The model of this point."""
        return self.family.named.build(**dict(self.values))

    def at(self, **changes: Any) -> Point:
        """The same point with some parameters changed."""
        return Point(**{**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """alpha and the parameters by name; the family too, if it is not the paper's."""
        own = {} if self.reference == PAPER else {"reference": self.reference}
        return {"alpha": self.alpha, **dict(self.values), **own}


def first_point(reference: str | None, settings: Sequence[str]) -> Point:
    """Where a page begins that is about a family, with some of its parameters set in text."""
    if reference is None and settings:
        raise InvalidInput("set", settings[0], "must be used with --model")
    name = reference or PAPER
    given = parse_assignments(settings, family(name).named.parameters, name)
    point = Point(reference=name, **given)
    for parameter, value in point.values:
        if value is REQUIRED:
            raise InvalidInput("set", parameter, "must be given, as --set NAME=VALUE")
    point.model()
    return point


def branches_of(model: Model) -> tuple[str, ...]:
    """The mechanisms that compete: with two columns a student may have both."""
    both = ("semantic", "positional")
    return both if model.student_rank == 1 else (*both, "mixed")


def bounded(field: str, text: str, low: float, high: float) -> float:
    """A number within bounds from text."""
    value = Number(at_least=low, at_most=high).parse(field, _short(field, text))
    return round(value, DECIMALS)


def whole(field: str, text: str, low: int, high: int) -> int:
    """A whole number within bounds from text."""
    return Integer(low, high).parse(field, _short(field, text))


def _read(one: Parameter, text: str) -> Any:
    """A parameter from text, no further than its slider where that is made for it."""
    text = _short(one.name, text)
    known = one if one.name == "alpha" else _paper_parameters().get(one.name)
    if isinstance(one.type, Number) and one.slider:
        if known and known.slider == one.slider:
            return bounded(one.name, text, one.slider.low, one.slider.high)
        return round(one.type.parse(one.name, text), DECIMALS)
    return one.type.parse(one.name, text)


def _short(field: str, text: str) -> str:
    if len(text) > LONGEST:
        raise InvalidInput(field, text, f"must be at most {LONGEST} characters long")
    return text
