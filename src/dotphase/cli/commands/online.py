"""`dotphase online`: one-pass stochastic gradient descent, every step on a new sentence."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import (
    START_OVERLAPS,
    ModelSpec,
    json_option,
    model_options,
    out_option,
    parameter_options,
    plot_option,
    start_arguments,
    task_options,
)
from dotphase.cli.output import Files, print_and_write


@click.command(
    "online", epilog="Example: dotphase online --start random --lr 16 --d 1000 --alpha 20"
)
@task_options("online", start="random")
@parameter_options(START_OVERLAPS, "overlaps")
@out_option
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any],
    overlaps: dict[str, float | None],
    out: str | None,
    plot: str | None,
    model: ModelSpec,
    seed: int,
    as_json: bool,
) -> int:
    """Test error and overlaps during one pass over fresh sentences.

    A random start needs --d to leave zero overlaps.

    Exit code 3: the descent diverged.
    """
    files = Files(out, plot)
    built = model.build()
    start = start_arguments(built, parameters.pop("start"), parameters.pop("scale"), overlaps)
    path = dp.online(built, **start, **parameters, seed=seed)
    print_and_write(path, "online", files, model, as_json)
    return 3 if path.diverged else 0
