"""`dotphase dynamics`: gradient descent step by step, in the limit of large d."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import (
    ModelSpec,
    json_option,
    model_options,
    out_option,
    parameter_options,
    plot_option,
)
from dotphase.cli.output import Files, print_json, progress_bar
from dotphase.config.parameters import Choice, Integer, Number, Parameter
from dotphase.study.tasks._shared import TEACHER_NORM

#: Options of the descent and of its accuracy.
PARAMETERS = (
    Parameter("alpha", Number(above=0), help="Sentences per dimension n/d."),
    Parameter("start", Choice("dotphase.finite_d.initializers:INITIALIZERS"), "semantic",
              "Initial weights."),
    Parameter("theta0", Number(), None, "Initial theta [default: that of the start]."),
    Parameter("m0", Number(), None, "Initial m [default: that of the start]."),
    Parameter("q0", Number(at_least=0), None, "Initial q [default: that of the start]."),
    Parameter("scale", Number(above=0), None,
              "Standard deviation of a random start's entries [default: 0.1]."),
    Parameter("lr", Number(above=0), 4.0, "Step size."),
    Parameter("steps", Integer(1), 127, "Number of steps."),
    Parameter("momentum", Number(at_least=0), 0.0, "Momentum coefficient."),
    Parameter("batch_fraction", Number(above=0, at_most=1), 1.0,
              "Fraction of the sentences in each step."),
    Parameter("d", Integer(2), None, "Dimension of a token [default: infinite]."),
    Parameter("ensemble", Integer(6, 24), 12, "log2 of the sentences in each repetition."),
    Parameter("repetitions", Integer(1), 8, "Independent repetitions."),
    Parameter("rtol", Number(above=0), 0.01, "Relative standard error to reach."),
    TEACHER_NORM,
)  # fmt: skip


@click.command(
    "dynamics",
    epilog="Example: dotphase dynamics --alpha 1 --start semantic --lr 8 --steps 100",
)
@parameter_options(PARAMETERS)
@out_option
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any],
    out: str | None,
    plot: str | None,
    model: ModelSpec,
    seed: int,
    as_json: bool,
) -> int:
    """Loss, test error and overlaps at every step of gradient descent.

    Exit code 3: the descent diverged; the steps before are still printed.
    """
    title = f"gradient descent from the {parameters['start']} start"
    with progress_bar(title, total=2 * parameters["repetitions"]) as bar:
        files = Files(out, plot)
        built = model.build()
        from dotphase.dmft.run import dynamics
        from dotphase.finite_d.initialization import changed_start

        start, scale = parameters.pop("start"), parameters.pop("scale")
        overlaps = {name: parameters.pop(f"{name}0") for name in ("theta", "m", "q")}
        if any(value is not None for value in overlaps.values()):
            start, scale = changed_start(built, start, scale, **overlaps), None
        path = dynamics(
            built,
            parameters.pop("alpha"),
            start,
            scale=scale,
            log2_ensemble=parameters.pop("ensemble"),
            seed=seed,
            progress=bar,
            **parameters,
        )
    with files.written_after(path.dataset(), "dynamics"):
        if as_json:
            print_json({**model.to_dict(), **path.to_dict(), **files.to_dict()})
        else:
            click.echo(str(path))
    if not as_json:
        files.echo_paths()
    return 3 if path.diverged else 0
