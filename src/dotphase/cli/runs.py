"""Options and output shared by the commands at finite dimension, `train` and `amp`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

import dotphase as dp
from dotphase.cli.options import POSITIVE
from dotphase.cli.output import echo, print_json, progress_bar
from dotphase.cli.request import Request, request_options
from dotphase.runtime.progress import ProgressCallback

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class RunsRequest(Request):
    """Options of `train` and `amp`: number of runs, and True to solve the theory at the same d."""

    seeds: int
    theory: bool


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
        @request_options
        @wraps(function)
        def wrapped(request: Request, seeds: int, theory: bool | None, **values: Any) -> Any:
            theory = not request.as_json if theory is None else theory
            runs = RunsRequest(**vars(request), seeds=seeds, theory=theory)
            return function(request=runs, **values)

        return wrapped  # type: ignore[return-value]

    return add  # fmt: skip


def compute_and_print(
    request: RunsRequest,
    title: str,
    compute: Callable[[dp.Model, ProgressCallback], Any],
    figure: str,
    inspect: Callable[[dp.Model, Any], dict[int, dict[str, Any]]] | None = None,
) -> int:
    """Compute runs, print and draw them, and return the exit code.

    After an interrupt the finished runs are printed. `inspect` returns further results by the index
    of the run.
    """
    interrupted, details = False, dict[int, dict[str, Any]]()
    with progress_bar(title, total=request.seeds) as bar:
        model = request.model.build()
        from dotphase.finite_d.runs import keep_finished

        try:
            result = compute(model, bar)
            if request.theory:
                bar.status("theory")
                with keep_finished(result.runs, lambda: result):
                    result = dp.analysis.with_theory(result)
            details = inspect(model, result) if inspect else {}
        except dp.Interrupted as stop:
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
