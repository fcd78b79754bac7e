"""Parameters that a user sets: by an option, in a study, with a slider.

A `Parameter` has a name, a kind that says which values it may have, a default and a line of
help. The options of the command line, the tables of studies and the sliders of the explorer are
made from it, and check what they are given by it. Nothing heavy is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from dotphase.config import validation
from dotphase.errors import InvalidInput


class Kind(Protocol):
    """Which values are allowed."""

    @property
    def label(self) -> str:
        """What stands for such a value in help."""
        ...

    def check(self, field: str, value: Any) -> Any:
        """`value` as JSON can hold it, or `InvalidInput`."""
        ...

    def read(self, field: str, text: str) -> Any:
        """The value that a text stands for, or `InvalidInput`."""
        ...


@dataclass(frozen=True)
class Number:
    """A finite number inside bounds."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    label = "FLOAT"

    def check(self, field: str, value: Any) -> float:
        """`value` as a float."""
        return validation.number(
            field, value, above=self.above, at_least=self.at_least, at_most=self.at_most
        )

    def read(self, field: str, text: str) -> float:
        """A number from text."""
        try:
            value = float(text)
        except ValueError:
            return self.check(field, text)  # refuses it
        try:
            return self.check(field, value)
        except InvalidInput as error:  # show what was typed
            raise InvalidInput(field, text, error.allowed) from None


@dataclass(frozen=True)
class Whole:
    """A whole number inside bounds."""

    at_least: int
    at_most: int | None = None
    label = "INTEGER"

    def check(self, field: str, value: Any) -> int:
        """`value` as an int."""
        return validation.whole(field, value, at_least=self.at_least, at_most=self.at_most)

    def read(self, field: str, text: str) -> int:
        """A whole number from text."""
        short = re.fullmatch(r"[+-]?[0-9]{1,20}", text)
        return self.check(field, int(text) if short else text)


class Log2(Whole):
    """log2 of a number of points, inside bounds."""

    def check(self, field: str, value: Any) -> int:
        """`value` as an int."""
        return validation.log2(field, value, self.at_least, self.at_most or self.at_least)


@dataclass(frozen=True)
class OneOf:
    """One of some words: given here, or the names of a list as ``module:NAME``."""

    options: tuple[str, ...] | str

    def names(self) -> tuple[str, ...]:
        """The words there are now."""
        if not isinstance(self.options, str):
            return self.options
        module, _, name = self.options.partition(":")
        return tuple(getattr(import_module(module), name))

    @property
    def label(self) -> str:
        """The words themselves."""
        return f"[{'|'.join(self.names())}]"

    def check(self, field: str, value: Any) -> str:
        """One of the words."""
        return validation.choice(field, value, self.names())

    read = check


@dataclass(frozen=True)
class Flag:
    """Yes or no."""

    label = "[true|false]"

    def check(self, field: str, value: Any) -> bool:
        """True or false, and nothing that stands for them."""
        if not isinstance(value, bool):
            validation.refuse(field, value, "must be true or false")
        return value

    def read(self, field: str, text: str) -> bool:
        """``true`` or ``false``."""
        return self.check(field, {"true": True, "false": False}.get(text.lower(), text))


@dataclass(frozen=True)
class Text:
    """Any text."""

    label = "TEXT"

    def check(self, field: str, value: Any) -> str:
        """A text."""
        if not isinstance(value, str):
            validation.refuse(field, value, "must be a text")
        return value

    read = check


class _Required:
    def __repr__(self) -> str:
        return "required"


#: Stands for the default of a parameter that has none.
REQUIRED = _Required()


@dataclass(frozen=True)
class Slider:
    """How the explorer shows a number.

    Attributes
    ----------
    letter : symbol in front of it
    low, high, step : as far as it reaches, and how finely; the step of a logarithmic slider is
        one of the decimal logarithm
    logarithmic : whether it moves in factors
    """

    letter: str
    low: float
    high: float
    step: float
    logarithmic: bool = False


@dataclass(frozen=True)
class Parameter:
    """A value with a name.

    Attributes
    ----------
    name : as Python, studies and (with hyphens) the command line have it
    kind : which values it may have
    default : value if it is not given; `REQUIRED` if it must be
    help : what it means, in one line
    slider : how the explorer shows it, if it does
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    help: str = ""
    slider: Slider | None = None


def table(*parameters: Parameter) -> dict[str, Parameter]:
    """Parameters by name."""
    return {parameter.name: parameter for parameter in parameters}


def complete(
    given: Mapping[str, Any], known: Mapping[str, Parameter], owner: str
) -> dict[str, Any]:
    """The values of all parameters: those given, checked, and the defaults of the others."""
    for name in given:
        if name not in known:
            rule = validation.unknown(f"parameter of {owner}", name, known)
            validation.refuse(name, given[name], rule)
    missing = [n for n, one in known.items() if one.default is REQUIRED and n not in given]
    if missing:
        validation.refuse(missing[0], None, f"must be given for {owner}")
    return {
        name: one.kind.check(name, given[name]) if name in given else one.default
        for name, one in known.items()
    }


def read_settings(
    texts: Iterable[str], known: Mapping[str, Parameter], owner: str
) -> dict[str, Any]:
    """Values from texts ``name=value``, each read as its parameter says."""
    values: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.strip()
        if not sign:
            validation.refuse("set", text, "must be name=value")
        if name not in known:
            validation.refuse("set", text, validation.unknown(f"parameter of {owner}", name, known))
        if name in values:
            validation.refuse("set", text, f"must not give {name} twice")
        values[name] = known[name].kind.read(name, value.strip())
    return values
