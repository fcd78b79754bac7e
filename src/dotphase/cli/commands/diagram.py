"""`dotphase diagram`: the phase diagram in alpha and omega, or another parameter of the model."""

import math
from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import Grid, alphas_option, option
from dotphase.cli.output import progress_bar
from dotphase.cli.request import Request, request_options
from dotphase.config.parameters import Number
from dotphase.errors import InvalidInput
from dotphase.study.tasks import TASKS

#: Critical lines on the map.
LINES = ("alpha_c", "alpha_l")


@click.command(
    "diagram",
    epilog="Example: dotphase diagram --alphas 0.1:2:25 --omegas 0:0.5:25 --out d.nc --plot d.png",
)
@alphas_option
@click.option("--omegas", type=Grid(Number(at_least=0, at_most=1)), default=None,
              help="Grid of omega.")  # fmt: skip
@click.option("--parameter", default=None, metavar="NAME",
              help="Another parameter of the model as the second axis.")  # fmt: skip
@click.option("--values", type=Grid(Number()), default=None, help="Grid of that parameter.")
@option(TASKS["critical"].parameters["log2_points"], default=14)
@request_options
def command(
    alphas: list[float],
    omegas: list[float] | None,
    parameter: str | None,
    values: list[float] | None,
    log2_points: int,
    request: Request,
) -> int:
    """Map the loss difference of the branches and the gain over the linear layer; draw the critical
    lines; hatch cells where the theory is not trusted."""
    parameter, values = _second_axis(omegas, parameter, values)
    family = request.model.vary(parameter, values)
    with progress_bar("solving the grid", total=2 * len(alphas) * len(values)) as bar:
        family(values[0])  # refuse a bad model before any slow work
        dataset = dp.diagram(
            family, sorted(alphas), values, parameter, log2_points=log2_points, seed=request.seed,
            progress=bar,
        )  # fmt: skip
    lines = {
        f"{name}{suffix}": dataset[f"{name}{suffix}"].values
        for name in LINES
        for suffix in ("", "_stderr", "_trusted")
    }
    axis = {"omegas": values} if parameter == "omega" else {}
    summary = {
        "alphas": sorted(alphas), **axis, "parameter": parameter, "values": values, **lines,
        "converged": float(dataset["converged"].mean()),
    }  # fmt: skip
    request.print(
        dataset, "diagram", lambda: summary, lambda: _print_lines(parameter, values, lines)
    )
    return 0


def _print_lines(parameter: str, values: list[float], lines: dict[str, Any]) -> None:
    """Print the critical lines with errors, interpolated on the grid."""
    from dotphase.config.formatting import format_value

    click.echo(f"{parameter:10s}" + "".join(f"{name:22s}" for name in LINES))
    for row, value in enumerate(values):
        cells = []
        for name in LINES:
            alpha, error, trusted = (
                lines[f"{name}{suffix}"][row] for suffix in ("", "_stderr", "_trusted")
            )
            mark = "" if trusted or math.isnan(alpha) else " ?"
            cells.append(f"{format_value(alpha, error) + mark:22s}")
        click.echo(f"{value:<10.4f}{''.join(cells)}".rstrip())
    click.echo("Interpolated on this grid; `dotphase critical` needs none. ?: theory not trusted.")


def _second_axis(
    omegas: list[float] | None, parameter: str | None, values: list[float] | None
) -> tuple[str, list[float]]:
    """Return the name and the increasing values of the second axis."""
    if omegas is None and (parameter is None or values is None):
        raise InvalidInput("omegas", None, "must be given, or --parameter and --values")
    if omegas is None:
        return str(parameter), sorted(values or ())
    if parameter is not None or values is not None:
        raise InvalidInput("omegas", omegas, "must not be used with --parameter and --values")
    return "omega", sorted(omegas)
