"""`dotphase critical`: where the mechanisms swap."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import Number, build_model, json_option, model_options, points_option
from dotphase.cli.output import print_json, progress_bar


@click.command("critical", epilog="Example: dotphase critical --omega 0.3 --json")
@click.option("--smallest", type=Number(above=0), default=0.05, help="Least alpha to search.")
@click.option("--largest", type=Number(above=0), default=8.0, help="Largest alpha to search.")
@points_option(17, "log2 of the Gaussian points.")
@model_options
@json_option
def command(
    smallest: float,
    largest: float,
    log2_points: int,
    seed: int,
    as_json: bool,
    **model_parts: Any,
) -> int:
    """alpha_c, where the training losses of the semantic and the positional branch cross, and
    alpha_l, where the lowest minimum beats the linear positional layer in test error.

    Exit code 3: there is no such point in the range searched; the message says why.
    """
    with progress_bar("looking for the critical points"):
        model = build_model(**model_parts)
        from dotphase.theory.critical import critical

        found = critical(
            model, smallest=smallest, largest=largest, log2_points=log2_points, seed=seed
        )
    if as_json:
        print_json({"omega": model_parts["omega"], **found.to_dict()})
    else:
        from dotphase.theory.solution import with_error

        click.echo(f"omega             {model_parts['omega']:g}")
        for name in ("alpha_c", "alpha_l"):
            value = getattr(found, name)
            shown = with_error(value, getattr(found, f"{name}_stderr"))
            click.echo(f"{name}           {shown if value == value else 'none'}")
        click.echo(f"linear test error {found.linear_test_error:.6g}")
        doubtful = "NOT TRUSTED" if found.alpha_c == found.alpha_c else "no crossing"
        verdict = "trusted" if found.trusted else doubtful
        click.echo(f"{verdict}: {found.message}")
    return 0 if found.found else 3
