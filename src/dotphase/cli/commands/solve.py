"""`dotphase solve`: one point of one branch."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import (
    POSITIVE,
    ModelSpec,
    json_option,
    model_options,
    option,
    task_options,
)
from dotphase.cli.output import echo, print_json, progress_bar
from dotphase.config.parameters import Number, Parameter
from dotphase.errors import InvalidInput

MAX_SECONDS = Parameter(
    "max_seconds", Number(above=0), None, "Time after which the best point so far is printed."
)


@click.command(
    "solve", epilog="Example: dotphase solve --alpha 1.5 --branch semantic --omega 0.3 --json"
)
@task_options("theory")
@model_options
@click.option("--breaking", type=click.Choice(("0", "1")), default="0", show_default=True,
              help="Steps of replica symmetry breaking.")  # fmt: skip
@click.option("--d", type=POSITIVE, default=None,
              help="Also the losses at this d, with their known terms of order 1/d.")  # fmt: skip
@option(MAX_SECONDS)
@json_option
def command(
    parameters: dict[str, Any],
    model: ModelSpec,
    breaking: str,
    d: int | None,
    max_seconds: float | None,
    seed: int,
    as_json: bool,
) -> int:
    """Overlaps, training loss and test error of one branch at one alpha.

    With --breaking 1 replica symmetry is broken once: the result has q0, q1, the Parisi parameter y
    and the effect of symmetry breaking.

    Exit code 3: the branch does not exist there, or the solver did not converge. The fixed point at
    which it ended is still printed.
    """
    if d is not None and breaking == "1":
        raise InvalidInput("--d", d, "must not be used with --breaking 1")
    parameters["max_seconds"] = max_seconds
    alpha, branch = parameters.pop("alpha"), parameters.pop("branch")
    with progress_bar(f"solving {branch} at alpha = {alpha:g}") as bar:
        point = (model.build(), alpha, branch)
        if breaking == "0":
            solution = dp.solve(*point, seed=seed, progress=bar.count, **parameters)
            finite = None if d is None else solution.at(d)
        else:
            solution, finite = dp.solve(*point, breaking=1, seed=seed, **parameters), None
    if as_json:
        print_json(solution.to_dict() | ({"at_d": finite.to_dict()} if finite else {}))
    else:
        for result in filter(None, (solution, finite)):
            echo(result)
    return 0 if solution.on_branch else 3
