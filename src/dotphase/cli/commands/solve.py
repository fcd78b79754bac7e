"""`dotphase solve`: one point of one branch."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import Asked, json_option, model_options, task_options
from dotphase.cli.output import print_json, progress_bar


@click.command(
    "solve", epilog="Example: dotphase solve --alpha 1.5 --branch semantic --omega 0.3 --json"
)
@task_options("theory")
@model_options
@click.option(
    "--breaking",
    type=click.Choice(["0", "1"]),
    default="0",
    show_default=True,
    help="Steps of replica symmetry breaking.",
)
@json_option
def command(
    parameters: dict[str, Any], model: Asked, breaking: str, seed: int, as_json: bool
) -> int:
    """Overlaps, training loss and test error of one branch at one alpha.

    With --breaking 1 replica symmetry is broken once: q0, q1, the Parisi parameter y and what
    breaking changes.

    Exit code 3: the branch does not exist there, or the solver did not converge; what was
    found instead is still printed.
    """
    alpha, branch = parameters.pop("alpha"), parameters.pop("branch")
    with progress_bar(f"solving {branch} at alpha = {alpha:g}"):
        built = model.build()
        from dotphase.theory.solve import solve

        if breaking == "0":
            solution = solve(built, alpha, branch, seed=seed, **parameters)
        else:
            solution = solve(built, alpha, branch, breaking=1, seed=seed, **parameters)
    if as_json:
        print_json(solution.to_dict())
    else:
        click.echo(str(solution))
    return 0 if solution.there else 3
