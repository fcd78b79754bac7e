"""`dotphase online`: one-pass stochastic gradient descent, every step on a new sentence."""

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
from dotphase.cli.output import Files, print_json
from dotphase.config.parameters import Choice, Flag, Integer, Number, Parameter

#: Options of the descent.
PARAMETERS = (
    Parameter("alpha", Number(above=0), help="Sentences seen per dimension, at the end."),
    Parameter("start", Choice("dotphase.finite_d.initializers:INITIALIZERS"), "random",
              "Initial weights; random ones need --d to leave zero overlaps."),
    Parameter("theta0", Number(), None, "Initial theta [default: that of the start]."),
    Parameter("m0", Number(), None, "Initial m [default: that of the start]."),
    Parameter("q0", Number(at_least=0), None, "Initial q [default: that of the start]."),
    Parameter("scale", Number(above=0), None,
              "Standard deviation of a random start's entries [default: 0.1]."),
    Parameter("lr", Number(above=0), help="Learning rate."),
    Parameter("schedule", Choice(("constant", "linear", "cosine", "inverse")), "constant",
              "Factor of the learning rate."),
    Parameter("d", Integer(2), None, "Dimension of a token [default: infinite]."),
    Parameter("batch_fraction", Number(at_least=0, at_most=1), 0.0,
              "Sentences per step over d; 0 for one sentence."),
    Parameter("spherical", Flag(), False, "Keep the length of the weights."),
    Parameter("repetitions", Integer(1), 8, "Runs at finite d."),
)  # fmt: skip


@click.command(
    "online",
    epilog="Example: dotphase online --alpha 20 --start semantic --lr 2",
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
    """Test error and overlaps during one pass over fresh sentences.

    Exit code 3: the descent diverged.
    """
    files = Files(out, plot)
    built = model.build()
    from dotphase.dmft.online import online
    from dotphase.finite_d.initialization import changed_start

    start, scale = parameters.pop("start"), parameters.pop("scale")
    overlaps = {name: parameters.pop(f"{name}0") for name in ("theta", "m", "q")}
    if any(value is not None for value in overlaps.values()):
        start, scale = changed_start(built, start, scale, **overlaps), None
    path = online(built, start=start, scale=scale, seed=seed, **parameters)
    with files.written_after(path.dataset(), "online"):
        if as_json:
            print_json({**model.to_dict(), **path.to_dict(), **files.to_dict()})
        else:
            click.echo(str(path))
    if not as_json:
        files.echo_paths()
    return 3 if path.diverged else 0
