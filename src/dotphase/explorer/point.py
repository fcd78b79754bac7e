"""A point of the page: alpha and the parameters of a model, parsed from a query and checked.

The page shows one family of models: the paper's, or that of ``dotphase explore --model``. Sliders
and fields of the page are generated from the table of its parameters (`dotphase.model.named`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
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
from dotphase.runtime.threads import call_within

#: Decimals of every number; points are compared after rounding.
DECIMALS = 6
#: Longest text of a number or a name.
MAX_TEXT = 40
#: Seconds in which a user's file must define its model.
MODEL_SECONDS = 30.0
#: Smallest and largest rank of the student.
RANKS = (1, 3)

ALPHA = Parameter(
    "alpha", Number(above=0), 1.5, "Sentences per dimension n/d.", Slider("α", 0.05, 5.0, 0.01)
)


class MixingType(ParameterType):
    """Type of a positional attention matrix A: its name, or "A_11,A_22" (rows sum to 1)."""

    name = "matrix"
    label = "standard|other|A_11,A_22"
    allowed = "must be standard, other, or A_11,A_22 with two numbers from 0 to 1"

    def check(self, field: str, value: Any) -> str:
        """Return the name of A, or its two diagonal entries with a comma between them."""
        text = _check_length(field, str(value))
        if text in MIXING:
            return text
        parts = text.split(",")
        if len(parts) != 2:
            raise InvalidInput(field, text, self.allowed)
        try:
            diagonal = [parse_number(field, part, 0.0, 1.0) for part in parts]
        except InvalidInput:
            raise InvalidInput(field, text, self.allowed) from None
        for name, matrix in MIXING.items():
            if diagonal == [matrix[0][0], matrix[1][1]]:
                return name
        return ",".join(f"{value:g}" for value in diagonal)


def mixing_matrix(mixing: str) -> list[list[float]]:
    """The positional attention matrix A of a value of `MixingType`."""
    if mixing in MIXING:
        return [list(row) for row in MIXING[mixing]]
    first, second = (float(part) for part in mixing.split(","))
    return [[first, round(1 - first, DECIMALS)], [round(1 - second, DECIMALS), second]]


def _paper_model(mixing: str, **parameters: Any) -> Model:
    return MODELS[PAPER].build(**parameters, mixing=mixing_matrix(mixing))


def _paper_parameters() -> dict[str, Parameter]:
    paper = MODELS[PAPER].parameters
    rank = replace(paper["student_rank"], type=Integer(*RANKS), slider=Slider("r", *RANKS, 1))
    mixing = replace(
        paper["mixing"], type=MixingType(), help="Positional attention of the teacher."
    )
    return table(*(paper[name] for name in ("omega", "sigma", "ridge")), mixing, rank)


@dataclass(frozen=True)
class Family:
    """A family of models, which the page shows."""

    reference: str  #: name of the family, or ``FILE.py:NAME``
    named: NamedModel  #: factory of the models, and their parameters
    #: the parameter on the vertical axis of the phase diagram, if there is one
    vertical: str | None

    @property
    def parameters(self) -> dict[str, Parameter]:
        """alpha and the parameters of the models."""
        return {"alpha": ALPHA, **self.named.parameters}

    @property
    def is_paper(self) -> bool:
        """True for the paper's family, for which the page has more views."""
        return self.reference == PAPER

    def parse(self, query: Mapping[str, str], default: Point) -> Point:
        """Parse a query; missing parameters have the values of `default`."""
        values = {
            name: _parse(parameter, query[name])
            for name, parameter in self.parameters.items()
            if name in query
        }
        point = default.replace(**values)
        if not self.is_paper:
            point.model()  # A user's own function may refuse these values.
        return point

    def controls(self, default: Point) -> list[dict[str, Any]]:
        """Name, description, default and slider of every parameter."""
        values = default.to_dict()
        return [
            {"name": name, "description": parameter.help.rstrip("."), "default": values[name],
             **(asdict(parameter.slider) if parameter.slider else {"letter": name})}
            for name, parameter in self.parameters.items()
        ]  # fmt: skip


@lru_cache(maxsize=4)
def family(reference: str) -> Family:
    """The family of a name or of ``FILE.py:NAME``; that file is executed."""
    if reference == PAPER:
        named = NamedModel(_paper_model, _paper_parameters(), MODELS[PAPER].help)
        return Family(PAPER, named, "omega")
    named = find_model(reference)
    parameters = {name: _with_slider(parameter) for name, parameter in named.parameters.items()}
    numbers = (name for name, parameter in parameters.items() if isinstance(parameter.type, Number))
    return Family(reference, replace(named, parameters=parameters), next(numbers, None))


def _with_slider(parameter: Parameter) -> Parameter:
    """Add a slider to a number: that of the paper's parameter of this name, or one around 1."""
    paper = MODELS[PAPER].parameters.get(parameter.name)
    if parameter.slider or not isinstance(parameter.type, Number | Integer):
        return parameter
    if paper and paper.slider and isinstance(parameter.type, Number):
        return replace(parameter, slider=paper.slider)
    value = 1.0 if parameter.default is REQUIRED else float(parameter.default)
    low, high = min(0.0, 2 * value), max(1.0, 2 * value)
    if isinstance(parameter.type, Integer):
        slider = Slider(parameter.name, int(low), int(max(high, 4)), 1)
    else:
        slider = Slider(parameter.name, low, high, round((high - low) / 100, DECIMALS))
    return replace(parameter, slider=slider)


@dataclass(frozen=True, init=False)
class Point:
    """alpha and the parameters of a model."""

    alpha: float  #: samples per dimension
    #: parameters by name; those of the paper's family are omega, sigma, ridge, student_rank and
    #: mixing, which is "standard", "other", or "A_11,A_22" for a matrix whose rows sum to 1
    values: tuple[tuple[str, Any], ...]
    reference: str  #: reference of the family

    def __init__(self, alpha: float = ALPHA.default, reference: str = PAPER, **given: Any) -> None:
        parameters = family(reference).named.parameters
        values = tuple((name, given.get(name, spec.default)) for name, spec in parameters.items())
        for name, value in (("alpha", alpha), ("values", values), ("reference", reference)):
            object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    @property
    def family(self) -> Family:
        """The family of the model."""
        return family(self.reference)

    def model(self) -> Model:
        """The model of this point; a user's model that takes too long is refused."""
        build = partial(self.family.named.build, **dict(self.values))
        if self.family.is_paper:
            return build()
        try:
            return call_within(MODEL_SECONDS, (self.reference, self.values), build)
        except TimeoutError:
            rule = f"took longer than {MODEL_SECONDS:g} s: its functions may loop for ever"
            raise InvalidInput("model", self.reference, rule) from None

    def replace(self, **changes: Any) -> Point:
        """The same point with other values of some parameters."""
        return Point(**{**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """alpha and the parameters by name, and the reference of a user's own family."""
        own = {} if self.reference == PAPER else {"reference": self.reference}
        return {"alpha": self.alpha, **dict(self.values), **own}


def initial_point(reference: str | None, settings: Sequence[str]) -> Point:
    """The first point of a page, from the options ``--model`` and ``--set`` of the command."""
    if reference is None and settings:
        raise InvalidInput("set", settings[0], "must be used with --model")
    name = reference or PAPER
    values = parse_assignments(settings, family(name).named.parameters, name)
    point = Point(reference=name, **values)
    for parameter, value in point.values:
        if value is REQUIRED:
            raise InvalidInput("set", parameter, "must be given, as --set NAME=VALUE")
    point.model()
    return point


def branches_of(model: Model) -> tuple[str, ...]:
    """The competing mechanisms; a student of two columns may have both."""
    both = ("semantic", "positional")
    return both if model.student_rank == 1 else (*both, "mixed")


def parse_number(field: str, text: str, low: float, high: float) -> float:
    """Parse a number and enforce its bounds."""
    value = Number(at_least=low, at_most=high).parse(field, _check_length(field, text))
    return round(value, DECIMALS)


def parse_integer(field: str, text: str, low: int, high: int) -> int:
    """Parse an integer and enforce its bounds."""
    return Integer(low, high).parse(field, _check_length(field, text))


def _parse(parameter: Parameter, text: str) -> Any:
    """Parse a parameter; enforce the bounds of sliders that were made for it."""
    name, slider = parameter.name, parameter.slider
    text = _check_length(name, text)
    own = parameter if name == "alpha" else _paper_parameters().get(name)
    if isinstance(parameter.type, Number) and slider:
        if own and own.slider == slider:
            return parse_number(name, text, slider.low, slider.high)
        return round(parameter.type.parse(name, text), DECIMALS)
    return parameter.type.parse(name, text)


def _check_length(field: str, text: str) -> str:
    if len(text) > MAX_TEXT:
        raise InvalidInput(field, text, f"must be at most {MAX_TEXT} characters long")
    return text
