"""`dotphase critical`: where the mechanisms swap."""

from __future__ import annotations

import math
from typing import Any

import click

from dotphase.cli.options import Asked, json_option, model_options, task_options
from dotphase.cli.output import print_json, progress_bar


@click.command("critical", epilog="Example: dotphase critical --omega 0.3 --json")
@task_options("critical")
@model_options
@json_option
def command(parameters: dict[str, Any], model: Asked, seed: int, as_json: bool) -> int:
    """alpha_c, where the training losses of the semantic and the positional branch cross, and
    alpha_l, where the lowest minimum beats the linear positional layer in test error.

    Exit code 3: there is no such point in the range searched; the message says why.
    """
    with progress_bar("looking for the critical points"):
        built = model.build()
        from dotphase.theory.critical import critical

        found = critical(built, seed=seed, **parameters)
    if as_json:
        print_json({**model.to_dict(), **found.to_dict()})
    else:
        from dotphase.theory.solution import with_error, with_errors

        for name, value in model.to_dict().items():
            click.echo(f"{name:17s} {value}")
        for name in ("alpha_c", "alpha_l"):
            value = getattr(found, name)
            breaking = getattr(found, f"{name}_model_error", 0.0)
            shown = with_errors(value, getattr(found, f"{name}_stderr"), breaking)
            click.echo(f"{name}           {shown if value == value else 'none'}")
        for name, limits in found.limits.items():
            for what, where, error in (
                ("is a minimum up to" if name == "positional" else "is a minimum from",
                 limits.stability_loss, limits.stability_loss_stderr),
                ("ends at", limits.end, limits.end_stderr),
            ):  # fmt: skip
                shown = f"alpha = {with_error(where, error)}" if where == where else "no alpha"
                click.echo(f"{name} branch {what} {shown}")
        if math.isfinite(found.linear_test_error):
            click.echo(f"linear test error {found.linear_test_error:.6g}")
        doubtful = "NOT TRUSTED" if found.alpha_c == found.alpha_c else "no crossing"
        verdict = "trusted" if found.trusted else doubtful
        click.echo(f"{verdict}: {found.message}")
    return 0 if found.found else 3
