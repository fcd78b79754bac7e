"""`dotphase critical`: transitions of the lowest minimum along alpha."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import ModelSpec, json_option, model_options, task_options
from dotphase.cli.output import echo, print_json, progress_bar


@click.command("critical", epilog="Example: dotphase critical --omega 0.3 --json")
@task_options("critical")
@model_options
@json_option
def command(parameters: dict[str, Any], model: ModelSpec, seed: int, as_json: bool) -> int:
    """Every change of the lowest minimum along alpha: alpha_c, from which it is aligned with the
    teacher (the training losses of the positional and the semantic branch cross), and alpha_l, from
    which its test error is below that of the linear positional layer.

    Exit code 3: neither exists in the range searched; the message gives the reason.
    """
    with progress_bar("searching the critical points"):
        built = model.build()
        result = dp.critical(built, seed=seed, **parameters)
    if as_json:
        print_json({**model.to_dict(), **result.to_dict()})
    else:
        for name, value in model.to_dict().items():
            click.echo(f"{name:17s} {value}")
        echo(result)
    return 0 if result.found else 3
