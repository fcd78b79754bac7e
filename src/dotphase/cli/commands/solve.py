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
@json_option
def command(parameters: dict[str, Any], model: Asked, seed: int, as_json: bool) -> int:
    """Overlaps, training loss and test error of one branch at one alpha.

    Exit code 3: the branch does not exist there, or the solver did not converge; what was
    found instead is still printed.
    """
    alpha, branch = parameters.pop("alpha"), parameters.pop("branch")
    with progress_bar(f"solving {branch} at alpha = {alpha:g}"):
        built = model.build()
        from dotphase.theory.solve import solve

        solution = solve(built, alpha, branch, seed=seed, **parameters)
    if as_json:
        print_json(solution.to_dict())
    else:
        click.echo(str(solution))
    return 0 if solution.converged and solution.on_branch else 3
