"""`dotphase online`: one-pass stochastic gradient descent, every step on a new sentence."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import START_OVERLAPS, parameter_options, start_arguments, task_options
from dotphase.cli.request import Request, request_options


@click.command(
    "online", epilog="Example: dotphase online --start random --lr 16 --d 1000 --alpha 20"
)
@task_options("online", start="random")
@parameter_options(START_OVERLAPS, "overlaps")
@request_options
def command(parameters: dict[str, Any], overlaps: dict[str, float | None], request: Request) -> int:
    """Test error and overlaps during one pass over fresh sentences.

    Exit code 3: the descent diverged.
    """
    model = request.model.build()
    start = start_arguments(model, parameters.pop("start"), parameters.pop("scale"), overlaps)
    path = dp.online(model, **start, **parameters, seed=request.seed)
    values = request.model.to_dict()
    request.print(
        path.dataset(), "online", lambda: values | path.to_dict(), lambda: click.echo(str(path))
    )
    return 3 if path.diverged else 0
