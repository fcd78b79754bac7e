"""`dotphase diagram`: the phase diagram in alpha and omega, or another parameter of the model."""

from __future__ import annotations

import click

from dotphase._numerics.parameters import Number
from dotphase.cli.options import (
    Asked,
    Checked,
    Grid,
    alphas_option,
    json_option,
    model_options,
    option,
    out_option,
    plot_option,
)
from dotphase.cli.output import Files, print_json, progress_bar
from dotphase.errors import InvalidInput
from dotphase.sweep.tasks import TASKS


@click.command(
    "diagram",
    epilog="Example: dotphase diagram --alphas 0.1:2:25 --omegas 0:0.5:25 --out d.nc --plot d.png",
)
@alphas_option
@click.option("--omegas", type=Checked(Grid(Number(at_least=0, at_most=1))), default=None,
              help="Grid of omega.")  # fmt: skip
@click.option("--parameter", default=None, metavar="NAME",
              help="Another parameter of the model as the second axis.")  # fmt: skip
@click.option("--values", type=Checked(Grid(Number())), default=None, help="Grid of it.")
@out_option
@plot_option
@option(TASKS["critical"].parameters["log2_points"], default=14)
@model_options
@json_option
def command(
    alphas: list[float],
    omegas: list[float] | None,
    parameter: str | None,
    values: list[float] | None,
    out: str,
    plot: str | None,
    log2_points: int,
    model: Asked,
    seed: int,
    as_json: bool,
) -> int:
    """Map the loss difference of the branches, the gain over the linear layer and the winner;
    draw the critical lines; hatch what is not to be trusted."""
    parameter, values = _second_axis(omegas, parameter, values)
    family = model.along(parameter, values)
    with progress_bar("solving the grid", total=2 * len(alphas) * len(values)) as advance:
        family(values[0])  # refuses a bad model before anything slow begins
        from dotphase.experiments.diagram import diagram

        files = Files(out, plot)
        dataset = diagram(
            family, sorted(alphas), values, parameter, log2_points=log2_points, seed=seed,
            progress=lambda solution: advance(),
        )  # fmt: skip
    lines = {name: dataset[name].values for name in ("alpha_c", "alpha_l")}
    with files.written_after(dataset, "diagram"):
        if as_json:
            axis = {"omegas": values} if parameter == "omega" else {}
            print_json({"alphas": sorted(alphas), **axis, "parameter": parameter, "values": values,
                        **lines, "converged": float(dataset["converged"].mean()),
                        **files.to_dict()})  # fmt: skip
        else:
            click.echo(f"{parameter:8s} alpha_c  alpha_l")
            for value, alpha_c, alpha_l in zip(values, *lines.values(), strict=True):
                line = f"{alpha_c:.4f}   {alpha_l:.4f}".replace("nan", "  -   ")
                click.echo(f"{value:<8.4f} {line}")
    if not as_json:
        files.tell()
    return 0


def _second_axis(
    omegas: list[float] | None, parameter: str | None, values: list[float] | None
) -> tuple[str, list[float]]:
    """Name and increasing values of the second axis."""
    if omegas is None and (parameter is None or values is None):
        raise InvalidInput("omegas", None, "must be given, or --parameter and --values")
    if omegas is None:
        return str(parameter), sorted(values or ())
    if parameter is not None or values is not None:
        raise InvalidInput("omegas", omegas, "must not be used with --parameter and --values")
    return "omega", sorted(omegas)
