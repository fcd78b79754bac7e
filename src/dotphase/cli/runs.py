"""Options and output shared by the commands at finite dimension, `train` and `amp`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dotphase.cli.options import (
    POSITIVE,
    ModelSpec,
    json_option,
    model_options,
    out_option,
    plot_option,
)
from dotphase.cli.output import Files, echo, print_json, progress_bar
from dotphase.runtime.progress import ProgressCallback

if TYPE_CHECKING:
    from dotphase.model import Model

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class RunsRequest:
    """Options shared by `train` and `amp`.

    Attributes
    ----------
    model : chosen model
    seed, seeds : root seed and number of runs
    theory : True to solve the theory at the same d
    files : dataset and figure to write
    as_json : True to print JSON
    """

    model: ModelSpec
    seed: int
    seeds: int
    theory: bool
    files: Files
    as_json: bool


def seeds_option(default: int) -> Callable[[F], F]:
    """Add ``--seeds``."""
    return click.option(
        "--seeds", type=POSITIVE, default=default, help="Number of runs, each with its own data."
    )


def runs_options(seeds: int) -> Callable[[F], F]:
    """Add the options of `RunsRequest`, passed to the command as `request`."""

    def add(function: F) -> F:
        @seeds_option(seeds)
        @click.option(
            "--theory/--no-theory",
            default=None,
            help="Solve the theory at this d as well [default: unless --json].",
        )
        @out_option
        @plot_option
        @model_options
        @json_option
        @wraps(function)
        def wrapped(
            model: ModelSpec,
            seed: int,
            seeds: int,
            theory: bool | None,
            out: str | None,
            plot: str | None,
            as_json: bool,
            **values: Any,
        ) -> Any:
            theory = not as_json if theory is None else theory
            request = RunsRequest(model, seed, seeds, theory, Files(out, plot), as_json)
            return function(request=request, **values)

        return wrapped  # type: ignore[return-value]

    return add  # fmt: skip


def compute_and_print(
    request: RunsRequest,
    title: str,
    compute: Callable[[Model, ProgressCallback], Any],
    figure: str,
    inspect: Callable[[Model, Any], dict[int, dict[str, Any]]] | None = None,
) -> int:
    """Compute runs, print and draw them, and return the exit code.

    After an interrupt the finished runs are printed. `inspect` returns further results by the index
    of the run.
    """
    interrupted, details = False, dict[int, dict[str, Any]]()
    with progress_bar(title, total=request.seeds) as bar:
        model = request.model.build()
        from dotphase.errors import Interrupted
        from dotphase.experiments.comparison.with_theory import with_theory
        from dotphase.finite_d.runs import keep_finished

        try:
            result = compute(model, bar)
            if request.theory:
                bar.status("theory")
                with keep_finished(result.runs, lambda: result):
                    result = with_theory(result)
            details = inspect(model, result) if inspect else {}
        except Interrupted as stop:
            interrupted, result = True, stop.finished
    with nullcontext() if interrupted else request.files.written_after(result, figure):
        _print(result, details, request.as_json)
    if interrupted:
        count = f"{len(result.runs)} of {request.seeds} runs"
        click.echo(f"dotphase: interrupted after {count}", err=True)
        return 130
    if not request.as_json:
        request.files.echo_paths()
    return 0 if result.successful else 3


def _print(result: Any, details: dict[int, dict[str, Any]], as_json: bool) -> None:
    """Print the runs with further results of each."""
    if as_json:
        values = result.to_dict()
        for run in values["runs"]:
            run |= details.get(run["index"], {})
        print_json(values)
        return
    echo(result)
    for index, values in details.items():
        hessian = values["hessian"]
        text = f"{hessian['verdict']}, smallest curvature {hessian['smallest']:.6g}"
        click.echo(f"  run {index}: {text}")
