"""Parameters that a user sets as a command-line option, a study key or a slider.

A `Parameter` has a name, a type that checks its values, a default and one line of help. Options of
the command line, tables of studies and sliders of the explorer are generated from the same
declaration. Nothing heavy is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from dotphase.config import validation
from dotphase.errors import InvalidInput


class ParameterType(Protocol):
    """Set of allowed values."""

    @property
    def label(self) -> str:
        """Placeholder for a value in help texts."""
        ...

    def check(self, field: str, value: Any) -> Any:
        """Return `value` in a JSON type, or raise `InvalidInput`."""
        ...

    def parse(self, field: str, text: str) -> Any:
        """Convert text to a value, or raise `InvalidInput`."""
        ...


@dataclass(frozen=True)
class Number:
    """Finite numbers within bounds."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    label = "FLOAT"

    def check(self, field: str, value: Any) -> float:
        """Return `value` as a float."""
        return validation.number(
            field, value, above=self.above, at_least=self.at_least, at_most=self.at_most
        )

    def parse(self, field: str, text: str) -> float:
        """Convert text to a float."""
        try:
            return self.check(field, float(text))
        except InvalidInput as error:  # show the text, not the converted number
            raise InvalidInput(field, text, error.allowed) from None
        except ValueError:
            return self.check(field, text)  # raises with the allowed range


@dataclass(frozen=True)
class Integer:
    """Integers within bounds."""

    at_least: int
    at_most: int | None = None
    label = "INTEGER"

    def check(self, field: str, value: Any) -> int:
        """Return `value` as an int."""
        return validation.integer(field, value, at_least=self.at_least, at_most=self.at_most)

    def parse(self, field: str, text: str) -> int:
        """Convert text to an int."""
        is_integer = re.fullmatch(r"[+-]?[0-9]{1,20}", text)
        return self.check(field, int(text) if is_integer else text)


class Log2(Integer):
    """log2 of a number of points, within bounds."""

    def check(self, field: str, value: Any) -> int:
        """Return `value` as an int."""
        return validation.log2(field, value, self.at_least, self.at_most or self.at_least)


@dataclass(frozen=True)
class Choice:
    """Names: a tuple, or the current names of a registry as ``module:NAME``."""

    options: tuple[str, ...] | str

    def names(self) -> tuple[str, ...]:
        """List the allowed names."""
        if not isinstance(self.options, str):
            return self.options
        module, _, name = self.options.partition(":")
        return tuple(getattr(import_module(module), name))

    @property
    def label(self) -> str:
        """All names."""
        return f"[{'|'.join(self.names())}]"

    def check(self, field: str, value: Any) -> str:
        """Return `value` if it is an allowed name."""
        return validation.choice(field, value, self.names())

    parse = check


@dataclass(frozen=True)
class Flag:
    """True or False."""

    label = "[true|false]"

    def check(self, field: str, value: Any) -> bool:
        """Return `value` if it is a bool; 0 and 1 are refused."""
        if not isinstance(value, bool):
            raise InvalidInput(field, value, "must be true or false")
        return value

    def parse(self, field: str, text: str) -> bool:
        """Convert ``true`` or ``false``."""
        return self.check(field, {"true": True, "false": False}.get(text.lower(), text))


@dataclass(frozen=True)
class Text:
    """Any text."""

    label = "TEXT"

    def check(self, field: str, value: Any) -> str:
        """Return `value` if it is a text."""
        if not isinstance(value, str):
            raise InvalidInput(field, value, "must be a text")
        return value

    parse = check


class _Required:
    def __repr__(self) -> str:
        return "required"


#: Default of a parameter that must be given.
REQUIRED = _Required()


@dataclass(frozen=True)
class Slider:
    """Range of a number in the explorer.

    Attributes
    ----------
    letter : symbol shown before the slider
    low, high, step : range and resolution; the step of a logarithmic slider is in log10
    logarithmic : True if the slider moves in factors
    """

    letter: str
    low: float
    high: float
    step: float
    logarithmic: bool = False


@dataclass(frozen=True)
class Parameter:
    """Declaration of a named value.

    Attributes
    ----------
    name : Python keyword, study key and, with hyphens, command-line option
    type : allowed values
    default : value if none is given; `REQUIRED` if there is no default
    help : one line
    slider : range in the explorer; None without a slider
    """

    name: str
    type: ParameterType
    default: Any = REQUIRED
    help: str = ""
    slider: Slider | None = None


def table(*parameters: Parameter) -> dict[str, Parameter]:
    """Return parameters by name."""
    return {parameter.name: parameter for parameter in parameters}


def fill_defaults(
    values: Mapping[str, Any], parameters: Mapping[str, Parameter], owner: str
) -> dict[str, Any]:
    """Check values and add the defaults of the remaining parameters."""
    for name, value in values.items():
        if name not in parameters:
            rule = validation.unknown_name(f"parameter of {owner}", name, parameters)
            raise InvalidInput(name, value, rule)
    for name, parameter in parameters.items():
        if parameter.default is REQUIRED and name not in values:
            raise InvalidInput(name, None, f"must be given for {owner}")
    return {
        name: parameter.type.check(name, values[name]) if name in values else parameter.default
        for name, parameter in parameters.items()
    }


def parse_assignments(
    texts: Iterable[str], parameters: Mapping[str, Parameter], owner: str
) -> dict[str, Any]:
    """Convert texts ``name=value`` to values by name."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise InvalidInput("set", text, "must be name=value")
        if name not in parameters:
            rule = validation.unknown_name(f"parameter of {owner}", name, parameters)
            raise InvalidInput("set", text, rule)
        if name in values:
            raise InvalidInput("set", text, f"must not give {name} twice")
        values[name] = parameters[name].type.parse(name, value.strip())
    return values
