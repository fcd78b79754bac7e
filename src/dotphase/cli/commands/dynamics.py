"""`dotphase dynamics`: gradient descent step by step, in the limit of large d."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import (
    Asked,
    json_option,
    model_options,
    parameter_options,
    plot_option,
)
from dotphase.cli.output import Files, print_json, progress_bar
from dotphase.config.parameters import Choice, Integer, Number, Parameter

#: What a descent is, and how well it is to be known.
PARAMETERS = (
    Parameter("alpha", Number(above=0), help="Sentences per dimension n/d, > 0."),
    Parameter("start", Choice("dotphase.finite_d.initializers:STARTS"), "semantic",
              "Initial weights."),
    Parameter("theta0", Number(), None, "theta at the start, instead of the start's own."),
    Parameter("m0", Number(), None, "m at the start, instead of the start's own."),
    Parameter("q0", Number(at_least=0), None, "q at the start, instead of the start's own."),
    Parameter("scale", Number(above=0), None,
              "Standard deviation of a random start's entries [default: 0.1]."),
    Parameter("lr", Number(above=0), help="Size of a step."),
    Parameter("steps", Integer(1), help="Steps."),
    Parameter("momentum", Number(at_least=0), 0.0, "Share of the last step that is added."),
    Parameter("batch_fraction", Number(above=0, at_most=1), 1.0,
              "Share of the sentences that a step sees."),
    Parameter("d", Integer(2), None, "Draw everything at this dimension [default: the limit]."),
    Parameter("ensemble", Integer(6, 24), 12, "log2 of the sentences of a repetition."),
    Parameter("repetitions", Integer(1), 8, "Independent repetitions."),
    Parameter("rtol", Number(above=0), 0.01, "Relative standard error to reach."),
)  # fmt: skip


@click.command(
    "dynamics",
    epilog="Example: dotphase dynamics --alpha 1 --start semantic --lr 8 --steps 100",
)
@parameter_options(PARAMETERS)
@click.option("--out", default=None, metavar="F.nc", help="Dataset to write.")
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any],
    out: str | None,
    plot: str | None,
    model: Asked,
    seed: int,
    as_json: bool,
) -> int:
    """Loss, test error and overlaps at every step of gradient descent.

    Exit code 3: it diverged; the steps before are still printed.
    """
    what = f"descending from the {parameters['start']} start"
    with progress_bar(what, total=2 * parameters["repetitions"]) as advance:
        files = Files(out, plot)
        built = model.build()
        from dotphase.dmft.run import dynamics
        from dotphase.finite_d.initialization import changed_start

        start, scale = parameters.pop("start"), parameters.pop("scale")
        given = {name: parameters.pop(f"{name}0") for name in ("theta", "m", "q")}
        if any(value is not None for value in given.values()):
            start, scale = changed_start(built, start, scale, **given), None
        path = dynamics(
            built,
            parameters.pop("alpha"),
            start,
            scale=scale,
            log2_ensemble=parameters.pop("ensemble"),
            seed=seed,
            on_repetition=advance,
            **parameters,
        )
    with files.written_after(path.dataset(), "dynamics"):
        if as_json:
            print_json({**model.to_dict(), **path.to_dict(), **files.to_dict()})
        else:
            click.echo(str(path))
    if not as_json:
        files.tell()
    return 3 if path.diverged else 0
