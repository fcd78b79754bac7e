"""`dotphase compare`: theory and training of one model, with a verdict at every point."""

import math
from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import POSITIVE
from dotphase.cli.output import progress_bar
from dotphase.cli.request import Request
from dotphase.cli.runs import seeds_option
from dotphase.cli.theory_options import DYNAMICS, curve_options
from dotphase.config.parameters import Choice, Integer, Number, Parameter

THEORY = Parameter(
    "theory", Choice(("state_evolution", "dynamics", "one_pass")), "state_evolution",
    "Minima of the training loss, the end of gradient descent, or one pass over fresh sentences.",
)  # fmt: skip
STARTS = Choice("dotphase.finite_d.initializers:INITIALIZERS")
#: Descent of theory and students.
DESCENT = (
    Parameter("lr", Number(above=0), 4.0, "Dynamics, one pass: step size."),
    Parameter("steps", Integer(1), 127, "Dynamics: number of steps."),
    DYNAMICS["ensemble"],
)
#: Columns of the table, and their decimals.
COLUMNS = {"train_loss": 6, "test_error": 6, "theta": 4, "m": 4}


@click.command(
    "compare",
    epilog="Example: dotphase compare --alphas 0.8:2:4 --d 500 --seeds 4 --plot compare.png",
)
@click.option("--d", type=POSITIVE, default=1000, help="Dimension of a token.")
@seeds_option(4)
@click.option("--amp", is_flag=True, help="Also run message passing.")
@curve_options("Branches, and starts of training.", DESCENT, THEORY, STARTS)
def command(request: Request, arguments: dict[str, Any], d: int, seeds: int, amp: bool) -> int:
    """Solve a model and train it on one grid of alpha, with a verdict at each point.

    With --theory dynamics or one_pass, students take the same steps as the theory.

    Exit code 3: the solver did not converge at some point. All points are still printed.
    """
    total = len(arguments["alphas"]) * len(arguments["branches"])
    with progress_bar("comparing", total=total) as bar:
        model = request.model.build()
        arguments |= {"d": d, "seeds": seeds, "amp": amp, "seed": request.seed}
        dataset = dp.compare(model, **arguments, progress=bar)
    values = request.model.to_dict()
    request.print(
        dataset, "compare", lambda: values | _summary(dataset), lambda: _print_table(dataset)
    )
    return 0 if bool(dataset["converged"].all()) else 3


def _summary(dataset: Any) -> dict[str, Any]:
    """Return numbers by source, branch and alpha, and verdicts by branch and alpha."""
    columns = [part for part in (*COLUMNS, "q") if part in dataset]
    sources = {
        str(name): {part: dataset[part].sel(source=name).values for part in columns}
        | {"stderr": {part: dataset[f"{part}_stderr"].sel(source=name).values for part in columns}}
        for name in dataset["source"].values
    }
    names = ("verdict", "score", "worst", "stayed", "trusted", "on_branch", "converged")
    return {
        "alphas": dataset["alpha"].values,
        "branches": dataset["branch"].values,
        "theory_name": dataset.attrs["theory"],
        "d": dataset.attrs["d"],
        "seeds": dataset.attrs["seeds"],
        **sources,
        **{name: dataset[name].values for name in names},
        "linear_test_error": float(dataset["linear_test_error"]),
    }


def _print_table(dataset: Any) -> None:
    """Print a row for each source at every point, with the verdict in the first."""
    from rich.console import Console
    from rich.table import Table

    theory = str(dataset.attrs["theory"]).replace("_", " ")
    table = Table(title=f"{theory} and training at d = {dataset.attrs['d']}")
    columns = {name: digits for name, digits in COLUMNS.items() if name in dataset}
    for name in ("alpha", "branch", "source", *columns, "verdict"):
        side = "left" if name in ("branch", "source", "verdict") else "right"
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for alpha in sorted(dataset["alpha"].values):
        for branch in dataset["branch"].values:
            point = dataset.sel(alpha=alpha, branch=branch)
            labels, verdict = [f"{alpha:.3f}", str(branch)], _verdict(point)
            for source in dataset["source"].values:
                row = point.sel(source=source)
                cells = [_cell(row, name, digits) for name, digits in columns.items()]
                table.add_row(*labels, str(source), *cells, verdict)
                labels, verdict = ["", ""], ""
    Console(width=max(140, Console().width)).print(table)
    click.echo(
        "In brackets: standard errors of the last digits. Number after the verdict: largest\n"
        "difference relative to the tolerance (3 standard errors, more for few data sets, 1%\n"
        "and 10/d). ?: theory not trusted."
    )


def _verdict(point: Any) -> str:
    """Format a verdict with its score, and a mark where the theory is not trusted."""
    text, score = str(point["verdict"].item()), float(point["score"])
    text += "" if math.isnan(score) else f" {score:.2f}"
    return text + (" ?" if bool(point["on_branch"]) and not bool(point["trusted"]) else "")


def _cell(row: Any, name: str, digits: int) -> str:
    """Format a value with its standard error in units of the last digit."""
    value, error = float(row[name]), float(row[f"{name}_stderr"])
    if math.isnan(value):
        return "-"
    return f"{value:.{digits}f}" + ("" if math.isnan(error) else f"({error * 10**digits:.0f})")
