"""`dotphase solve`: one point of one branch."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import (
    ALPHA,
    BRANCHES,
    build_model,
    json_option,
    model_options,
    quadrature_options,
)
from dotphase.cli.output import print_json, progress_bar


@click.command(
    "solve", epilog="Example: dotphase solve --alpha 1.5 --branch semantic --omega 0.3 --json"
)
@click.option("--alpha", type=ALPHA, required=True, help="Samples per dimension n/d, > 0.")
@click.option("--branch", type=click.Choice(BRANCHES), default="semantic", show_default=True,
              help="Branch to follow.")  # fmt: skip
@model_options
@quadrature_options(rtol=2e-3, most=20)
@json_option
def command(
    alpha: float,
    branch: str,
    seed: int,
    log2_points: int | None,
    rtol: float,
    most: int,
    as_json: bool,
    **model_parts: Any,
) -> int:
    """Overlaps, training loss and test error of one branch at one alpha.

    Exit code 3: the branch does not exist there, or the solver did not converge; what was
    found instead is still printed.
    """
    with progress_bar(f"solving {branch} at alpha = {alpha:g}"):
        model = build_model(**model_parts)
        from dotphase.theory.solve import solve

        solution = solve(
            model, alpha, branch, rtol=rtol, log2_points=log2_points, most=most, seed=seed
        )
    if as_json:
        print_json(solution.to_dict())
    else:
        click.echo(str(solution))
    return 0 if solution.converged and solution.on_branch else 3
