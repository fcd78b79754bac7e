"""`dotphase critical`: where the mechanisms swap."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import Asked, json_option, model_options, task_options
from dotphase.cli.output import echo, print_json, progress_bar


@click.command("critical", epilog="Example: dotphase critical --omega 0.3 --json")
@task_options("critical")
@model_options
@json_option
def command(parameters: dict[str, Any], model: Asked, seed: int, as_json: bool) -> int:
    """Every change of the lowest minimum along alpha: alpha_c, where it begins to know the teacher
    (the training losses of the positional and the semantic branch cross), and alpha_l, where it
    beats the linear positional layer in test error.

    Exit code 3: there is neither in the range searched; the message says why.
    """
    with progress_bar("looking for the critical points"):
        built = model.build()
        from dotphase.theory.critical import critical

        found = critical(built, seed=seed, **parameters)
    if as_json:
        print_json({**model.to_dict(), **found.to_dict()})
    else:
        for name, value in model.to_dict().items():
            click.echo(f"{name:17s} {value}")
        echo(found)
    return 0 if found.found else 3
