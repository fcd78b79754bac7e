"""Options shared by the commands, generated from tables of parameters."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import click

import dotphase as dp
from dotphase.cli import compiling
from dotphase.cli.output import STDOUT
from dotphase.config import validation
from dotphase.config.parameters import (
    REQUIRED,
    Flag,
    Integer,
    Number,
    Parameter,
    ParameterType,
    Text,
    fill_defaults,
    parse_assignments,
)
from dotphase.errors import InvalidInput
from dotphase.model.named import MODELS, PAPER, NamedModel

F = TypeVar("F", bound=Callable[..., Any])

#: Most points of a grid.
MAX_POINTS = 100_000


class Grid(ParameterType):
    """``A:B:N``: N evenly spaced numbers from A to B, both included; or one number."""

    name = "grid"
    label = "A:B:N"

    def __init__(self, number: Number) -> None:
        self.number = number

    def check(self, field: str, value: Any) -> list[float]:
        """Return the numbers as a list."""
        return [self.number.check(field, item) for item in value]

    def parse(self, field: str, text: str) -> list[float]:
        """Convert ``A:B:N`` to numbers."""
        parts = text.split(":")
        if len(parts) == 1 and "," not in text:
            return [self.number.parse(field, text)]
        digits = parts[-1].lstrip("0")
        is_count = digits.isdecimal() and len(digits) <= len(str(MAX_POINTS))
        if len(parts) != 3 or not is_count or not 1 <= int(digits) <= MAX_POINTS:
            rule = "must be A:B:N, from A to B in N >= 1 points, as in 0.5:2:20"
            raise InvalidInput(field, text, rule)
        first, last = (self.number.parse(field, part) for part in parts[:2])
        count = int(digits)
        if count == 1:
            return [first]
        if first == last:
            raise InvalidInput(field, text, "must have A different from B when N > 1")
        return [first + (last - first) * k / (count - 1) for k in range(count)]


class DistinctValues(ParameterType):
    """Different values of one type, separated by commas."""

    name = "list"
    label = "A,B,..."

    def __init__(self, item_type: ParameterType) -> None:
        self.item_type = item_type

    def check(self, field: str, value: Any) -> list[Any]:
        """Return the values as a list."""
        values = [self.item_type.check(field, item) for item in value]
        if len(set(values)) != len(values):
            raise InvalidInput(field, value, "must not repeat a value")
        return values

    def parse(self, field: str, text: str) -> list[Any]:
        """Split text at its commas."""
        parts = [part.strip() for part in text.split(",")]
        try:
            return self.check(field, [self.item_type.parse(field, part) for part in parts])
        except InvalidInput as error:
            rule = error.allowed.replace("must be", "must each be")
            raise InvalidInput(field, text, f"{rule}, separated by commas") from None


class ModelName(Text):
    """Name of a model, or ``FILE.py:NAME``; looked up when the command runs."""

    @property
    def label(self) -> str:
        """All named models."""
        return "|".join(["FILE.py:NAME", *MODELS])


POSITIVE = Integer(1)

alphas_option = click.option(
    "--alphas", type=Grid(Number(above=0)), required=True, help="Grid of alpha."
)
seed_option = click.option("--seed", type=Integer(0), default=0, help="Seed.")


class _Stderr(io.TextIOBase):
    """Writes to stderr, and leaves it open for a model that closes its output."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def close(self) -> None:
        pass


def _reserve_stdout(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Keep stdout for the JSON object: output of the functions of a model goes to stderr."""
    if value:
        context.meta[STDOUT] = sys.stdout
        context.with_resource(redirect_stdout(_Stderr()))
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_reserve_stdout, help="Print one JSON object."
)
plot_option = click.option(
    "--plot", default=None, metavar="F.png", help="Figure to draw (.png, .svg, .pdf)."
)
out_option = click.option("--out", default=None, metavar="F.nc", help="Dataset to write.")
#: Overlaps of the initial weights, for `start_arguments`.
START_OVERLAPS = (
    Parameter("theta0", Number(), None, "Initial theta [default: that of the start]."),
    Parameter("m0", Number(), None, "Initial m [default: that of the start]."),
    Parameter("q0", Number(at_least=0), None, "Initial q [default: that of the start]."),
)
#: Second spellings of options, by the name of the parameter.
ALIASES = {
    "branch": "--start", "start": "--branch", "ridge": "--lambda", "log2_points": "--points",
}  # fmt: skip


def option(parameter: Parameter, **changes: Any) -> Callable[[F], F]:
    """Add the option of a parameter, with some of its fields changed."""
    parameter = replace(parameter, **changes)
    name = parameter.name
    flag = "--" + name.replace("_", "-")
    arguments: dict[str, Any] = {"help": parameter.help}
    if parameter.default is REQUIRED:
        arguments["required"] = True
    else:
        arguments["default"] = parameter.default
    if isinstance(parameter.type, Flag):
        flags = f"{flag}/--no-{flag[2:]}" if parameter.default is True else flag
        return click.option(flags, name, is_flag=True, **arguments)
    aliases = [ALIASES[name]] if name in ALIASES else []
    return click.option(flag, *aliases, name, type=parameter.type, **arguments)


def _add(function: F, options: Iterable[Callable[[F], F]]) -> F:
    """Apply decorators so that help lists the options in the given order."""
    for add in reversed(list(options)):
        function = add(function)
    return function


def task_options(task: str, *names: str, **defaults: Any) -> Callable[[F], F]:
    """Add options of a study's task, by default all, passed to the command as `parameters`.

    `defaults` replace those of the task.
    """
    from dotphase.study.tasks import TASKS

    table = TASKS[task].parameters
    return parameter_options(
        replace(table[name], default=defaults.get(name, table[name].default))
        for name in names or table
    )


def parameter_options(
    parameters: Iterable[Parameter], argument: str = "parameters"
) -> Callable[[F], F]:
    """Add options of parameters, passed to the command as one mapping `argument`."""
    table = {parameter.name: parameter for parameter in parameters}

    def add(function: F) -> F:
        @wraps(function)
        def wrapped(**values: Any) -> Any:
            chosen = {name: values.pop(name) for name in table}
            return function(**{argument: chosen}, **values)

        return _add(wrapped, map(option, table.values()))  # type: ignore[return-value]

    return add


def start_arguments(
    model: dp.Model, start: str, scale: float | None, overlaps: Mapping[str, float | None]
) -> dict[str, Any]:
    """Return the arguments `start` and `scale` of a named start with some `START_OVERLAPS`."""
    from dotphase.finite_d.initialization import changed_start

    if all(value is None for value in overlaps.values()):
        return {"start": start, "scale": scale}
    prescribed = {name.removesuffix("0"): value for name, value in overlaps.items()}
    return {"start": changed_start(model, start, scale, **prescribed), "scale": None}


@dataclass(frozen=True)
class ModelSpec:
    """Model chosen by the options of a command."""

    reference: str | None  #: name of a model or ``FILE.py:NAME``; None for the model of the paper
    family: NamedModel  #: models that differ in parameters
    values: Mapping[str, Any]  #: chosen parameters

    def build(self, **changes: Any) -> dp.Model:
        """Build the model, with some parameters changed."""
        prepare_jax()
        return self.family.build(**{**self.values, **changes})

    def vary(self, name: str, values: Sequence[float]) -> Callable[[float], dp.Model]:
        """Return the model as a function of one parameter, after a check of its values."""
        if name not in self.family.parameters:
            rule = validation.unknown_name("parameter of the model", name, self.family.parameters)
            raise InvalidInput("parameter", name, rule)
        kind = self.family.parameters[name].type
        if not isinstance(kind, Number | Integer):
            raise InvalidInput("parameter", name, "must be a number to be swept")
        if self.reference is not None and name in self.values:
            raise InvalidInput("set", f"{name}={self.values[name]}", "must not be swept as well")

        def convert(number: float) -> Any:
            integral = isinstance(kind, Integer) and float(number).is_integer()
            return kind.check(name, int(number) if integral else number)

        for value in values:
            convert(value)
        return lambda number: self.build(**{name: convert(number)})

    def to_dict(self) -> dict[str, Any]:
        """Return omega for the paper's model, the name and all parameters for others."""
        if self.reference is None:
            return {"omega": self.values["omega"]}
        parameters = fill_defaults(self.values, self.family.parameters, "the model")
        return {"model": self.reference, "parameters": parameters}


def model_reference_options(function: F) -> F:
    """Add ``--model`` and ``--set``."""
    return _add(
        function,
        [
            click.option("--model", "reference", type=ModelName(), default=None,
                         help="Another model than the paper's: a named model, or a function (or "
                              "Model) of a Python file, which is EXECUTED."),
            click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                         help="Parameter of that model; may be repeated."),
        ],
    )  # fmt: skip


def model_options(function: F) -> F:
    """Add the options of a model and the seed, passed as a `ModelSpec` `model` and `seed`."""
    table = MODELS[PAPER].parameters

    @wraps(function)
    def wrapped(reference: str | None, settings: tuple[str, ...], **values: Any) -> Any:
        paper = {name: values.pop(name) for name in table}
        return function(model=_model_spec(reference, settings, paper), **values)

    shared = [model_reference_options, seed_option]
    return _add(wrapped, [*map(option, table.values()), *shared])  # type: ignore[return-value]


def refuse_options(names: Iterable[str], conflict: str, hint: str = "") -> None:
    """Raise `InvalidInput` if one of the options was given beside a conflicting one."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            rule = f"must not be used with {conflict}{hint.format(name)}"
            raise InvalidInput("--" + name.replace("_", "-"), context.params[name], rule)


def _model_spec(
    reference: str | None, settings: tuple[str, ...], paper: dict[str, Any]
) -> ModelSpec:
    if reference is None:
        if settings:
            raise InvalidInput("set", settings[0], "must be used with --model")
        return ModelSpec(None, MODELS[PAPER], paper)
    refuse_options(paper, "--model", "; a parameter {0} is --set {0}=...")
    from dotphase.model.load import find_model

    if reference not in MODELS:
        prepare_jax()
    family = find_model(reference)
    return ModelSpec(reference, family, parse_assignments(settings, family.parameters, reference))


def prepare_jax() -> None:
    """Keep compiled code on disk, and log devices and compilations of this process."""
    from dotphase.runtime.compilation_cache import enable_for_process
    from dotphase.runtime.devices import devices

    enable_for_process()
    compiling.register()
    names = dict.fromkeys((device.platform, device.device_kind) for device in devices())
    # A CPU has the platform "cpu" and the kind "cpu".
    text = ", ".join(" ".join(dict.fromkeys(name)) for name in names)
    logging.getLogger("dotphase").info("running on %s", text)
