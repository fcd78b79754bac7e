"""`dotphase curve`: branches against alpha, as a dataset and a figure."""

import math
from typing import Any

import click

import dotphase as dp
from dotphase.cli.output import progress_bar
from dotphase.cli.request import Request
from dotphase.cli.theory_options import DYNAMICS, curve_options


@click.command(
    "curve", epilog="Example: dotphase curve --alphas 0.5:2:20 --out curve.nc --plot curve.png"
)
@curve_options("Branches, or starts of gradient descent.", DYNAMICS.values())
def command(request: Request, arguments: dict[str, Any]) -> int:
    """Branches along alpha, and alpha_c, at which their training losses cross.

    Exit code 3: the solver did not converge at some point. All points are still printed.
    """
    total = len(arguments["alphas"]) * len(arguments["branches"])
    with progress_bar("solving the branches", total=total) as bar:
        model = request.model.build()
        dataset = dp.curve(model, **arguments, seed=request.seed, progress=bar)
    request.print(dataset, "curve", lambda: _summary(dataset), lambda: _print_table(dataset))
    return 0 if bool(dataset["converged"].all()) else 3


def _summary(dataset: Any) -> dict[str, Any]:
    """Return the numbers by branch and alpha, with errors, and alpha_c."""
    parts = ("train_loss", "test_error", "q", "m", "V", "theta")
    columns = ("found", "on_branch", "converged", "trusted", "kind", *parts)
    quantities = [name for name in parts if name in dataset]
    scalars = ("linear_test_error", "alpha_c", "alpha_c_stderr")
    return {
        "theory": dataset.attrs.get("theory", "state_evolution"),
        "alphas": dataset["alpha"].values,
        "branches": dataset["branch"].values,
        **{name: dataset[name].values for name in columns if name in dataset},
        "stderr": {name: dataset[f"{name}_stderr"].values for name in quantities},
        **{name: float(dataset[name]) for name in scalars},
    }


def _print_table(dataset: Any) -> None:
    """Print the branches side by side, the linear layer and alpha_c."""
    from rich.console import Console
    from rich.table import Table

    from dotphase.theory.branches import BRANCHES

    overlaps = {
        name: [part for part in ("theta", "m") if part not in BRANCHES[name].vanishing]
        for name in dataset["branch"].values.tolist()
    }
    is_descent = dataset.attrs.get("theory") == "dynamics"
    rows = "ends of gradient descent" if is_descent else "branches"
    marks = "s saddle, ? theory not trusted, - no such branch"
    table = Table(title=f"{rows} against alpha ({marks})")
    table.add_column("alpha", justify="right")
    for name, parts in overlaps.items():
        for column in ("loss", "test error", *parts):
            table.add_column(f"{name}\n{column}", justify="right", no_wrap=True)
    ordered = dataset.sortby("alpha")
    for alpha in ordered["alpha"].values:
        points = ((ordered.sel(branch=name, alpha=alpha), overlaps[name]) for name in overlaps)
        cells = [cell for point, parts in points for cell in _cells(point, parts)]
        table.add_row(f"{alpha:.3f}", *cells)
    Console(width=max(88, Console().width)).print(table)
    linear = float(dataset["linear_test_error"])
    if math.isfinite(linear):
        click.echo(f"linear positional layer: test error {linear:.6f}")
    _print_alpha_c(ordered)


def _cells(point: Any, overlaps: list[str]) -> list[str]:
    """Format loss, test error and overlaps of one point of a branch."""
    if not bool(point["on_branch"]):
        return ["-"] * (2 + len(overlaps))
    mark = "" if bool(point["trusted"]) else "?"
    mark = "s" if "kind" in point and point["kind"] == "saddle" else mark
    loss, error = float(point["train_loss"]), float(point["test_error"])
    return [f"{loss:.6f}{mark}", f"{error:.6f}", *(f"{float(point[q]):.4f}" for q in overlaps)]


def _print_alpha_c(ordered: Any) -> None:
    """Print alpha_c, marked unless both minima are trusted at its neighbors on the grid."""
    from dotphase.config.formatting import format_value

    alpha_c = float(ordered["alpha_c"])
    if not math.isfinite(alpha_c):
        click.echo("the training losses do not cross on this grid")
        return
    index = int(ordered["alpha"].searchsorted(alpha_c))
    neighbors = ordered.isel(alpha=slice(max(index - 1, 0), index + 1))
    trusted = bool(neighbors.sel(branch=["semantic", "positional"])["trusted"].all())
    value = format_value(alpha_c, float(ordered["alpha_c_stderr"]))
    mark = "" if trusted else " ? (theory not trusted)"
    click.echo(f"the training losses cross at alpha_c = {value}{mark}")
