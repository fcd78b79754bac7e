"""Parameters that a user sets as a command-line option, a study key or a slider.

A `Parameter` has a name, a type that checks its values, a default and one line of help. Options of
the command line, tables of studies and sliders of the explorer are generated from the same
declaration. Nothing heavy is imported.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from dotphase.config import validation
from dotphase.errors import InvalidInput


class ParameterType(click.ParamType):
    """Set of allowed values: a type of click that also checks values from Python and TOML.

    Both routes raise the same message. `convert`, which click calls, adds the name of the option.
    """

    @property
    def label(self) -> str:
        """Placeholder for a value in help texts."""
        return self.name.upper()

    def check(self, field: str, value: Any) -> Any:
        """Return `value` in a JSON type, or raise `InvalidInput`."""
        raise NotImplementedError

    def parse(self, field: str, text: str) -> Any:
        """Convert text to a value, or raise `InvalidInput`."""
        return self.check(field, text)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text of an option."""
        try:
            return self.parse("", value) if isinstance(value, str) else self.check("", value)
        except InvalidInput as error:
            self.fail(str(error).partition(" = ")[2], param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return `label`, read at every call so that it lists options registered later."""
        return self.label


class Number(ParameterType, click.FloatRange):
    """Finite numbers within bounds."""

    name = "float"

    def __init__(
        self,
        *,
        above: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        lower = at_least if above is None else above
        click.FloatRange.__init__(self, lower, at_most, min_open=above is not None)
        self._bounds = {"above": above, "at_least": at_least, "at_most": at_most}

    def _describe_range(self) -> str:
        """Return the text that click adds to the help; nothing without bounds."""
        return "" if self.min is self.max is None else super()._describe_range()

    def check(self, field: str, value: Any) -> float:
        """Return `value` as a float."""
        return validation.number(field, value, **self._bounds)

    def parse(self, field: str, text: str) -> float:
        """Convert text to a float."""
        try:
            return self.check(field, float(text))
        except InvalidInput as error:  # show the text, not the converted number
            raise InvalidInput(field, text, error.allowed) from None
        except ValueError:
            return self.check(field, text)  # raises with the allowed range


class Integer(ParameterType, click.IntRange):
    """Integers within bounds."""

    name = "integer"

    def __init__(self, at_least: int, at_most: int | None = None) -> None:
        click.IntRange.__init__(self, at_least, at_most)
        self.at_least, self.at_most = at_least, at_most

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


class Choice(ParameterType, click.Choice):
    """Names: a tuple, or the current names of a registry as ``module:NAME``."""

    def __init__(self, options: Iterable[str] | str) -> None:
        self.options = options if isinstance(options, str) else tuple(options)
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """Allowed names, for validation, help texts and the completion of the shell."""
        if not isinstance(self.options, str):
            return self.options
        module, _, name = self.options.partition(":")
        return tuple(getattr(import_module(module), name))

    @property
    def label(self) -> str:
        """All names."""
        return f"[{'|'.join(self.choices)}]"

    def check(self, field: str, value: Any) -> str:
        """Return `value` if it is an allowed name."""
        return validation.choice(field, value, self.choices)


class Flag(ParameterType):
    """True or False."""

    name = "boolean"
    label = "[true|false]"

    def check(self, field: str, value: Any) -> bool:
        """Return `value` if it is a bool; 0 and 1 are refused."""
        if not isinstance(value, bool):
            raise InvalidInput(field, value, "must be true or false")
        return value

    def parse(self, field: str, text: str) -> bool:
        """Convert ``true`` or ``false``."""
        return self.check(field, {"true": True, "false": False}.get(text.lower(), text))


class Text(ParameterType):
    """Any text."""

    name = "text"

    def check(self, field: str, value: Any) -> str:
        """Return `value` if it is a text."""
        if not isinstance(value, str):
            raise InvalidInput(field, value, "must be a text")
        return value


class _Required:
    def __repr__(self) -> str:
        return "required"


#: Default of a parameter that must be given.
REQUIRED = _Required()


@dataclass(frozen=True)
class Slider:
    """Range of a number in the explorer."""

    letter: str  #: symbol shown before the slider
    #: range and resolution; the step of a logarithmic slider is in log10
    low: float
    high: float
    step: float
    logarithmic: bool = False  #: True if the slider moves in factors


@dataclass(frozen=True)
class Parameter:
    """Declaration of a named value."""

    name: str  #: Python keyword, study key and, with hyphens, command-line option
    type: ParameterType  #: allowed values
    default: Any = REQUIRED  #: value if none is given; `REQUIRED` if there is no default
    help: str = ""  #: one line
    slider: Slider | None = None  #: range in the explorer; None without a slider


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
