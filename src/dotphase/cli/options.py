"""Options shared by the commands, and what they turn into."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dotphase.model import Model

F = TypeVar("F", bound=Callable[..., Any])

BRANCHES = ("semantic", "positional", "uninformed", "mixed")


class Number(click.ParamType):
    """A finite number inside bounds; the message names the value and what is allowed."""

    name = "float"

    def __init__(
        self,
        *,
        above: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        self.above, self.at_least, self.at_most = above, at_least, at_most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        good = math.isfinite(number)
        good = good and (self.above is None or number > self.above)
        good = good and (self.at_least is None or number >= self.at_least)
        good = good and (self.at_most is None or number <= self.at_most)
        if not good:
            bounds = [("> ", self.above), (">= ", self.at_least), ("<= ", self.at_most)]
            rules = " and ".join(f"{sign}{bound:g}" for sign, bound in bounds if bound is not None)
            self.fail(f"{value!r} must be a finite number {rules}".rstrip(), param, ctx)
        return number


class Grid(click.ParamType):
    """``A:B:N``: N evenly spaced numbers from A to B, both included; or one number."""

    name = "A:B:N"

    def __init__(
        self,
        *,
        above: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        self.bound = Number(above=above, at_least=at_least, at_most=at_most)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        if isinstance(value, list):
            return value
        parts = str(value).split(":")
        if len(parts) == 1 and "," not in parts[0]:
            return [self.bound.convert(parts[0], param, ctx)]
        if len(parts) != 3 or not parts[2].isdecimal() or not 1 <= int(parts[2]) <= 100_000:
            self.fail(
                f"{value!r} must be A:B:N, from A to B in N >= 1 points, as in 0.5:2:20", param, ctx
            )
        first = self.bound.convert(parts[0], param, ctx)
        last = self.bound.convert(parts[1], param, ctx)
        count = int(parts[2])
        if count > 1 and first == last:
            self.fail(f"{value!r} must have A different from B when N > 1", param, ctx)
        if count == 1:
            return [first]
        return [first + (last - first) * k / (count - 1) for k in range(count)]


class BranchList(click.ParamType):
    """Names of branches with commas between them."""

    name = "NAMES"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        if isinstance(value, list):
            return value
        names = [part.strip() for part in str(value).split(",")]
        if not set(names) <= set(BRANCHES) or len(set(names)) != len(names):
            self.fail(
                f"{value!r} must be different ones of {', '.join(BRANCHES)}, with commas",
                param,
                ctx,
            )
        return names


ALPHA = Number(above=0)


def model_options(function: F) -> F:
    """The options that describe a model, the same on every command."""
    return model_options_without()(function)


def model_options_without(*left_out: str) -> Callable[[F], F]:
    """The options that describe a model, but for those that a command sweeps."""

    def add(function: F) -> F:
        for name, option in reversed(list(_model_options().items())):
            function = function if name in left_out else option(function)
        return function

    return add


def _model_options() -> dict[str, Callable[[F], F]]:
    options = [
        click.option("--omega", type=Number(at_least=0, at_most=1), default=0.3,
                     help="Positional weight of the teacher, in [0, 1]."),
        click.option("--sigma", type=Number(above=0), default=0.5,
                     help="Standard deviation of the tokens."),
        click.option("--ridge", type=Number(above=0), default=0.01, help="Penalty lambda."),
        click.option("--mixing", default="standard", metavar="standard|other|FILE.json",
                     help="Positional attention matrix A."),
        click.option("--student-rank", type=click.IntRange(min=1), default=1,
                     help="Columns of the student's matrix."),
        click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed."),
    ]  # fmt: skip
    names = ("omega", "sigma", "ridge", "mixing", "student_rank", "seed")
    return dict(zip(names, options, strict=True))


def points_option(default: int | None, text: str) -> Callable[[F], F]:
    """``--log2-points``; ``--points``, its name in version 0.1, is taken with a note."""

    def note(context: click.Context, option: click.Parameter, value: int | None) -> None:
        if value is not None:
            click.echo("dotphase: --points is called --log2-points now", err=True)
            context.params["log2_points"] = value

    def add(function: F) -> F:
        kind = click.IntRange(12, 24)
        new = click.option("--log2-points", type=kind, default=default, metavar="LOG2", help=text)
        old = click.option("--points", type=kind, hidden=True, expose_value=False, callback=note)
        return new(old(function))

    return add


def quadrature_options(rtol: float, most: int) -> Callable[[F], F]:
    """The options that set the precision of the theory."""

    def add(function: F) -> F:
        options = [
            points_option(None, "log2 of a fixed number of Gaussian points."),
            click.option("--rtol", type=Number(above=0), default=rtol,
                         help="Relative standard error at which no more points are added."),
            click.option("--most", type=click.IntRange(12, 24), default=most, metavar="LOG2",
                         help="log2 of the most points on the way to --rtol."),
        ]  # fmt: skip
        for option in reversed(options):
            function = option(function)
        return function

    return add


def where_options(function: F) -> F:
    """The options that say where the points of a study are computed."""
    options = [
        click.option("--engine", type=click.Choice(("local", "dask", "here")), default="local",
                     show_default=True,
                     help="Processes here, a Dask cluster, or this process alone."),
        click.option("--scheduler", default=None, metavar="ADDRESS",
                     help="Existing Dask cluster; without it one is started here."),
        click.option("--workers", type=click.IntRange(min=1), default=None,
                     help="Processes to start [default: one for every core]."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def build_model(omega: float, sigma: float, ridge: float, mixing: str, student_rank: int) -> Model:
    """The model that the options describe."""
    prepare_jax()
    from dotphase.model.paper import positional_semantic

    return positional_semantic(omega, sigma, ridge, mixing, student_rank)


def prepare_jax() -> None:
    """Keep compiled functions in the user's cache folder between runs of the command line.

    This is the program's own process, so its JAX settings are ours to change; the library
    leaves them alone.
    """
    import jax

    for name, value in cache_settings().items():
        jax.config.update(name, value)


def cache_settings() -> dict[str, Any]:
    """Settings of JAX that keep compiled functions, by name; none if there is nowhere to."""
    import os
    from pathlib import Path

    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "dotphase" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return {}  # compile anew each time
    return {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }


def share_cache() -> None:
    """Let worker processes keep compiled functions as well; they read it from the environment."""
    import os

    for name, value in cache_settings().items():
        os.environ.setdefault(name.upper(), str(value))
