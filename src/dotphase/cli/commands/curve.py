"""`dotphase curve`: branches against alpha, as a dataset and a figure."""

from __future__ import annotations

import math
from typing import Any

import click

from dotphase.cli.descent import DYNAMICS, SOLVER, THEORY, theory_options
from dotphase.cli.options import (
    Asked,
    alphas_option,
    branches_option,
    json_option,
    model_options,
    option,
    out_option,
    plot_option,
    task_options,
)
from dotphase.cli.output import Files, print_json, progress_bar


@click.command(
    "curve", epilog="Example: dotphase curve --alphas 0.5:2:20 --out curve.nc --plot curve.png"
)
@alphas_option
@branches_option("Branches to follow, or starts of descents.")
@option(THEORY)
@option(DYNAMICS["lr"])
@option(DYNAMICS["steps"])
@option(DYNAMICS["momentum"])
@option(DYNAMICS["ensemble"])
@out_option
@plot_option
@task_options("theory", *SOLVER, rtol=1e-2, max_log2_points=14)
@model_options
@json_option
def command(
    alphas: list[float],
    branches: list[str],
    theory: str,
    out: str | None,
    plot: str | None,
    parameters: dict[str, Any],
    model: Asked,
    seed: int,
    as_json: bool,
    **descent: Any,
) -> int:
    """Follow branches along alpha; mark where their training losses cross."""
    parameters = theory_options(theory, parameters, descent)
    with progress_bar("following branches", total=len(alphas) * len(branches)) as advance:
        built = model.build()
        from dotphase.experiments.theory.curve import curve

        files = Files(out, plot)
        dataset = curve(
            built, alphas, branches, theory=theory, seed=seed,
            progress=lambda solution: advance(), **parameters,
        )  # fmt: skip
    with files.written_after(dataset, "curve"):
        if as_json:
            print_json(_summary(dataset) | files.to_dict())
        else:
            _print_table(dataset)
    if not as_json:
        files.tell()
    return 0 if bool(dataset["converged"].all()) else 3


def _summary(dataset: Any) -> dict[str, Any]:
    shown = [
        name for name in ("train_loss", "test_error", "q", "m", "V", "theta") if name in dataset
    ]
    told = ["found", "on_branch", "converged", "trusted", *shown]
    if "kind" in dataset:
        told.append("kind")
    single = ("linear_test_error", "alpha_c", "alpha_c_stderr")
    return {
        "theory": dataset.attrs.get("theory", "state_evolution"),
        "alphas": dataset["alpha"].values,
        "branches": dataset["branch"].values,
        **{name: dataset[name].values for name in told},
        "stderr": {name: dataset[f"{name}_stderr"].values for name in shown},
        **{name: float(dataset[name]) for name in single},
    }


def _print_table(dataset: Any) -> None:
    """The branches side by side, and alpha_c."""
    from rich.console import Console
    from rich.table import Table

    from dotphase.config.formatting import format_value
    from dotphase.theory.branches import BRANCHES

    branches = dataset["branch"].values.tolist()
    overlaps = {
        name: [part for part in ("theta", "m") if part not in BRANCHES[name].vanishing]
        for name in branches
    }
    ends = dataset.attrs.get("theory") == "dynamics"
    what = "ends of gradient descent" if ends else "branches"
    marks = "s saddle, ? theory not trusted, - no such branch"
    table = Table(title=f"{what} against alpha ({marks})")
    table.add_column("alpha", justify="right")
    for name in branches:
        for column in ("loss", "test error", *overlaps[name]):
            table.add_column(f"{name}\n{column}", justify="right", no_wrap=True)
    ordered = dataset.sortby("alpha")
    for alpha in ordered["alpha"].values:
        cells = [f"{alpha:.3f}"]
        for name in branches:
            point = ordered.sel(branch=name, alpha=alpha)
            if not bool(point["on_branch"]):
                cells += ["-"] * (2 + len(overlaps[name]))
                continue
            doubt = "" if bool(point["trusted"]) else "?"
            doubt = "s" if "kind" in point and point["kind"] == "saddle" else doubt
            cells.append(f"{float(point['train_loss']):.6f}{doubt}")
            cells.append(f"{float(point['test_error']):.6f}")
            cells += [f"{float(point[part]):.4f}" for part in overlaps[name]]
        table.add_row(*cells)
    Console(width=max(88, Console().width)).print(table)
    linear = float(dataset["linear_test_error"])
    if math.isfinite(linear):
        click.echo(f"linear positional layer: test error {linear:.6f}")
    alpha_c = float(dataset["alpha_c"])
    if math.isfinite(alpha_c):
        place = format_value(alpha_c, float(dataset["alpha_c_stderr"]))
        doubt = "" if _trusted_at(ordered, alpha_c) else " ? (theory not trusted there)"
        click.echo(f"the training losses cross at alpha_c = {place}{doubt}")
    else:
        click.echo("the training losses do not cross on this grid")


def _trusted_at(ordered: Any, alpha: float) -> bool:
    """Whether both minima are trusted at the points of the grid next to an alpha."""
    place = int(ordered["alpha"].searchsorted(alpha))
    beside = ordered.isel(alpha=slice(max(place - 1, 0), place + 1))
    return bool(beside.sel(branch=["semantic", "positional"])["trusted"].all())
