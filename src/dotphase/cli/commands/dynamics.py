"""`dotphase dynamics`: gradient descent step by step, in the limit of large d."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import START_OVERLAPS, parameter_options, start_arguments
from dotphase.cli.output import progress_bar
from dotphase.cli.request import Request, request_options
from dotphase.config.parameters import Integer, Number, Parameter
from dotphase.study.tasks._shared import ALPHA, DIMENSION_OR_LIMIT, SCALE, START, TEACHER_NORM

#: Options of the descent and of its accuracy.
PARAMETERS = (
    ALPHA,
    START,
    SCALE,
    Parameter("lr", Number(above=0), 4.0, "Step size."),
    Parameter("steps", Integer(1), 127, "Number of steps."),
    Parameter("momentum", Number(at_least=0), 0.0, "Momentum coefficient."),
    Parameter("batch_fraction", Number(above=0, at_most=1), 1.0,
              "Fraction of the sentences in each step."),
    DIMENSION_OR_LIMIT,
    Parameter("ensemble", Integer(6, 24), 12, "log2 of the sentences in each repetition."),
    Parameter("repetitions", Integer(1), 8, "Independent repetitions."),
    Parameter("rtol", Number(above=0), 0.01, "Relative standard error to reach."),
    TEACHER_NORM,
)  # fmt: skip


@click.command(
    "dynamics", epilog="Example: dotphase dynamics --alpha 1 --start semantic --lr 8 --steps 100"
)
@parameter_options(PARAMETERS)
@parameter_options(START_OVERLAPS, "overlaps")
@request_options
def command(parameters: dict[str, Any], overlaps: dict[str, float | None], request: Request) -> int:
    """Loss, test error and overlaps at every step of gradient descent.

    Exit code 3: the descent diverged; the steps before are still printed.
    """
    title = f"gradient descent from the {parameters['start']} start"
    with progress_bar(title, total=2 * parameters["repetitions"]) as bar:
        model = request.model.build()
        start, scale = parameters.pop("start"), parameters.pop("scale")
        path = dp.dynamics(
            model,
            **start_arguments(model, start, scale, overlaps),
            log2_ensemble=parameters.pop("ensemble"),
            seed=request.seed,
            progress=bar,
            **parameters,
        )
    values = request.model.to_dict()
    request.print(
        path.dataset(), "dynamics", lambda: values | path.to_dict(), lambda: click.echo(str(path))
    )
    return 3 if path.diverged else 0
