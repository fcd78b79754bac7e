"""Options shared by the commands, made from tables of parameters, and what they turn into."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dotphase.cli import compiling
from dotphase.config import validation
from dotphase.config.parameters import (
    REQUIRED,
    Choice,
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

if TYPE_CHECKING:
    from dotphase.model import Model

F = TypeVar("F", bound=Callable[..., Any])


class Checked(click.ParamType):
    """A value of some kind; the message names the value and what is allowed."""

    def __init__(self, kind: ParameterType) -> None:
        self.kind = kind

    @property
    def name(self) -> str:  # type: ignore[override]
        """As help calls such a value."""
        return self.kind.label.lower()

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """What stands for the value in help; read now, so that new options are in it."""
        return self.kind.label

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value from its text."""
        try:
            return (self.kind.parse if isinstance(value, str) else self.kind.check)("", value)
        except InvalidInput as error:
            self.fail(str(error).partition(" = ")[2], param, ctx)


@dataclass(frozen=True)
class Grid:
    """``A:B:N``: N evenly spaced numbers from A to B, both included; or one number."""

    bound: Number
    label = "A:B:N"

    def check(self, field: str, value: Any) -> list[float]:
        """A list of numbers."""
        return [self.bound.check(field, each) for each in value]

    def parse(self, field: str, text: str) -> list[float]:
        """The numbers that ``A:B:N`` stands for."""
        parts = text.split(":")
        if len(parts) == 1 and "," not in text:
            return [self.bound.parse(field, text)]
        if len(parts) != 3 or not parts[2].isdecimal() or not 1 <= int(parts[2]) <= 100_000:
            rule = "must be A:B:N, from A to B in N >= 1 points, as in 0.5:2:20"
            raise InvalidInput(field, text, rule)
        first, last = (self.bound.parse(field, part) for part in parts[:2])
        count = int(parts[2])
        if count == 1:
            return [first]
        if first == last:
            raise InvalidInput(field, text, "must have A different from B when N > 1")
        return [first + (last - first) * k / (count - 1) for k in range(count)]


@dataclass(frozen=True)
class Several:
    """Different values of a kind with commas between them."""

    kind: ParameterType
    label = "A,B,..."

    def check(self, field: str, value: Any) -> list[Any]:
        """A list of values."""
        values = [self.kind.check(field, each) for each in value]
        if len(set(values)) != len(values):
            raise InvalidInput(field, value, "must have no value twice")
        return values

    def parse(self, field: str, text: str) -> list[Any]:
        """The values that a text lists."""
        parts = [part.strip() for part in text.split(",")]
        try:
            return self.check(field, [self.kind.parse(field, part) for part in parts])
        except InvalidInput as error:
            rule = error.allowed.replace("must be", "must each be")
            raise InvalidInput(field, text, f"{rule}, with commas between") from None


COUNT = Checked(Integer(1))

alphas_option = click.option(
    "--alphas", type=Checked(Grid(Number(above=0))), required=True, help="Grid of alpha."
)
seed_option = click.option("--seed", type=Checked(Integer(0)), default=0, help="Seed.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
plot_option = click.option(
    "--plot", default=None, metavar="F.png", help="Figure to draw (.png, .svg, .pdf)."
)
out_option = click.option("--out", default=None, metavar="F.nc", help="Dataset to write.")
#: Other names of options, by that of the parameter.
ALIASES = {"branch": "--start", "start": "--branch", "ridge": "--lambda"}


def branches_option(help: str) -> Callable[[F], F]:
    """``--branches``."""
    kind = Checked(Several(Choice("dotphase.theory.branches:BRANCHES")))
    return click.option("--branches", type=kind, default="semantic,positional", help=help)


def where_options(function: F) -> F:
    """The options that say where the points of a study are computed."""
    options = [
        click.option("--engine", type=Checked(Choice(("local", "dask", "here"))), default="local",
                     help="Processes here, a Dask cluster, or this process alone."),
        click.option("--scheduler", default=None, metavar="ADDRESS",
                     help="Existing Dask cluster; without it one is started here."),
        click.option("--workers", type=COUNT, default=None,
                     help="Processes to start [default: one for every core]."),
    ]  # fmt: skip
    return _add(function, options)


def option(parameter: Parameter, **changes: Any) -> Callable[[F], F]:
    """The option of a parameter, with some of its fields changed."""
    parameter = replace(parameter, **changes)
    name = parameter.name
    flag = "--" + name.replace("_", "-")
    also = (ALIASES[name],) if name in ALIASES else ()
    shown: dict[str, Any] = {"help": parameter.help}
    shown |= {"required": True} if parameter.default is REQUIRED else {"default": parameter.default}
    if isinstance(parameter.type, Flag):
        both = f"{flag}/--no-{flag[2:]}" if parameter.default is True else flag
        return click.option(both, name, is_flag=True, **shown)
    add: Callable[[F], F] = click.option(flag, *also, name, type=Checked(parameter.type), **shown)
    return _also_points(add, parameter.type) if name == "log2_points" else add


def _also_points(add: Callable[[F], F], kind: ParameterType) -> Callable[[F], F]:
    """``--points``, the name of ``--log2-points`` in version 0.1, is taken with a note."""

    def note(context: click.Context, option: click.Parameter, value: int | None) -> None:
        if value is not None:
            click.echo("dotphase: --points is called --log2-points now", err=True)
            context.params["log2_points"] = value

    old = click.option(
        "--points", type=Checked(kind), hidden=True, expose_value=False, callback=note
    )
    return lambda function: add(old(function))


def _add(function: F, options: Iterable[Callable[[F], F]]) -> F:
    for add in reversed(list(options)):
        function = add(function)
    return function


def task_options(task: str, *names: str, **defaults: Any) -> Callable[[F], F]:
    """The options of a study's task, which the command is given as the mapping `parameters`.

    All of the task's parameters, or those of some names; defaults may differ from the task's.
    """
    from dotphase.study.tasks import TASKS

    known = TASKS[task].parameters
    return parameter_options(
        replace(known[name], default=defaults.get(name, known[name].default))
        for name in names or known
    )


def parameter_options(parameters: Iterable[Parameter]) -> Callable[[F], F]:
    """Options of parameters, which the command is given as the mapping `parameters`."""
    chosen = list(parameters)

    def add(function: F) -> F:
        @wraps(function)
        def wrapped(**values: Any) -> Any:
            return function(parameters={one.name: values.pop(one.name) for one in chosen}, **values)

        return _add(wrapped, map(option, chosen))  # type: ignore[return-value]

    return add


@dataclass(frozen=True)
class Asked:
    """The model that a command is asked about.

    Attributes
    ----------
    reference : name of a model or ``FILE.py:NAME``; None for the options of the paper's family
    family : how it is made
    values : parameters that are given
    """

    reference: str | None
    family: NamedModel
    values: Mapping[str, Any]

    def build(self, **changes: Any) -> Model:
        """The model, with some parameters changed."""
        prepare_jax()
        return self.family.build(**{**self.values, **changes})

    def along(self, name: str, values: Sequence[float]) -> Callable[[float], Model]:
        """The model as a function of one of its parameters, which may have these values."""
        if name not in self.family.parameters:
            rule = validation.unknown_name("parameter of the model", name, self.family.parameters)
            raise InvalidInput("parameter", name, rule)
        kind = self.family.parameters[name].type
        if not isinstance(kind, Number | Integer):
            raise InvalidInput("parameter", name, "must be a number to be swept")
        if self.reference is not None and name in self.values:
            raise InvalidInput("set", f"{name}={self.values[name]}", "must not be swept as well")

        def value_of(number: float) -> Any:
            whole = isinstance(kind, Integer) and float(number).is_integer()
            return kind.check(name, int(number) if whole else number)

        for value in values:
            value_of(value)
        return lambda number: self.build(**{name: value_of(number)})

    def to_dict(self) -> dict[str, Any]:
        """The model in words: omega for the paper's, the name and all parameters for others."""
        if self.reference is None:
            return {"omega": self.values["omega"]}
        known = self.family.parameters
        return {
            "model": self.reference,
            "parameters": fill_defaults(self.values, known, "the model"),
        }


class ModelName(Text):
    """The name of a model, or where it is; found when the command runs."""

    @property
    def label(self) -> str:  # type: ignore[override]
        """The names there are now."""
        return "|".join(["FILE.py:NAME", *MODELS])


def model_reference_options(function: F) -> F:
    """``--model`` and ``--set``."""
    return _add(
        function,
        [
            click.option("--model", "reference", type=Checked(ModelName()), default=None,
                         help="Another model than the paper's: a function (or Model) of a Python "
                              "file, which is EXECUTED, or one that is known by name."),
            click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                         help="Parameter of that model; may be repeated."),
        ],
    )  # fmt: skip


def model_options(function: F) -> F:
    """The options that describe a model and the seed; the command is given an `Asked` `model`."""
    table = MODELS[PAPER].parameters

    @wraps(function)
    def wrapped(reference: str | None, settings: tuple[str, ...], **values: Any) -> Any:
        paper = {name: values.pop(name) for name in table}
        return function(model=_asked(reference, settings, paper), **values)

    shared = [model_reference_options, seed_option]
    return _add(wrapped, [*map(option, table.values()), *shared])  # type: ignore[return-value]


def refuse_given(names: Iterable[str], because: str, instead: str = "") -> None:
    """Refuse options that the user has given, of some names, because of another option."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            rule = f"must not be used with {because}" + instead.format(name)
            raise InvalidInput("--" + name.replace("_", "-"), context.params[name], rule)


def _asked(reference: str | None, settings: tuple[str, ...], paper: dict[str, Any]) -> Asked:
    if reference is None:
        if settings:
            raise InvalidInput("set", settings[0], "must be used with --model")
        return Asked(None, MODELS[PAPER], paper)
    refuse_given(paper, "--model", "; a parameter {0} is --set {0}=...")
    from dotphase.model.load import find_model

    if reference not in MODELS:
        prepare_jax()
    family = find_model(reference)
    return Asked(reference, family, parse_assignments(settings, family.parameters, reference))


def prepare_jax() -> None:
    """Keep all that is compiled, and tell of it: this is the program's own process."""
    from dotphase.runtime.compilation_cache import enable_for_process
    from dotphase.runtime.devices import devices

    enable_for_process()
    compiling.watch()
    each = (dict.fromkeys((device.platform, device.device_kind)) for device in devices())
    where = ", ".join(map(" ".join, each))  # a CPU is a "cpu" of the kind "cpu"
    logging.getLogger("dotphase").info("running on %s", where)
