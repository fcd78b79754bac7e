"""What the commands at finite dimension have in common: runs, a figure, and what is printed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import click

from dotphase.cli.options import COUNT, Asked
from dotphase.cli.output import Files, echo, print_json, progress_bar

F = TypeVar("F", bound=Callable[..., Any])


def seeds_option(default: int) -> Callable[[F], F]:
    """``--seeds``."""
    return click.option(
        "--seeds", type=COUNT, default=default, help="Number of runs, each with its own data."
    )


#: ``--theory``: in text it is part of the answer, in JSON it is asked for.
theory_option = click.option(
    "--theory/--no-theory",
    default=None,
    help="Solve the theory at this d as well [default: unless --json].",
)


def run_seeds(
    what: str,
    compute: Callable[..., Any],
    draw: str,
    model: Asked,
    seeds: int,
    files: Files,
    as_json: bool,
    theory: bool,
    look: Callable[[Any, Any], dict[int, dict[str, Any]]] | None = None,
) -> int:
    """Compute runs, print them and draw them; after an interrupt the finished ones are printed.

    Parameters
    ----------
    what : shown while it is computed
    compute : function of the model, of what to say beside the bar, with `seeds` and `on_run`, that
        returns the runs
    draw : name of the figure of the runs
    model, seeds, files, as_json : what was asked
    theory : whether to solve the theory at this d as well, to be printed beside the means
    look : function of the model and the runs that gives more about each, by its seed

    Returns
    -------
    int
        The exit code.
    """
    interrupted, more = False, dict[int, dict[str, Any]]()
    with progress_bar(what, total=seeds) as advance:
        built = model.build()
        from dotphase.errors import Interrupted
        from dotphase.experiments.comparison.with_theory import with_theory
        from dotphase.finite_d.runs import keeping

        try:
            result = compute(built, advance.status, seeds=seeds, on_run=lambda run: advance())
            if theory:
                advance.status("theory")
                with keeping(result.runs, lambda: result):
                    result = with_theory(result)
            more = look(built, result) if look else {}
        except Interrupted as stop:
            interrupted, result = True, stop.finished
    with nullcontext() if interrupted else files.written_after(result, draw):
        if as_json:
            shown = result.to_dict()
            for row in shown["runs"]:
                row |= more.get(row["seed"], {})
            print_json(shown)
        else:
            echo(result)
            for seed, found in more.items():
                at = found["hessian"]
                curved = f"{at['verdict']}, smallest curvature {at['smallest']:.6g}"
                click.echo(f"  run {seed}: {curved}")
    if interrupted:
        click.echo(f"dotphase: interrupted after {len(result.runs)} of {seeds} runs", err=True)
        return 130
    if not as_json:
        files.tell()
    return 0 if result.finished else 3
