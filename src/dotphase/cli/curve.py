"""`dotphase curve`: branches against alpha, as a dataset and a figure."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import (
    BranchList,
    Grid,
    build_model,
    json_option,
    model_options,
    quadrature_options,
)
from dotphase.cli.output import print_json, progress_bar


@click.command(
    "curve",
    epilog="Example: dotphase curve --alphas 0.5:2:20 --out curve.nc --plot curve.png",
)
@click.option("--alphas", type=Grid(above=0), required=True, help="Grid of alpha.")
@click.option("--branches", type=BranchList(), default="semantic,positional", show_default=True,
              help="Branches to follow.")  # fmt: skip
@click.option("--out", required=True, metavar="F.nc", help="Dataset to write.")
@click.option("--plot", default=None, metavar="F.png", help="Figure to draw (.png, .svg, .pdf).")
@model_options
@quadrature_options(rtol=1e-2, most=14)
@json_option
def command(
    alphas: list[float],
    branches: list[str],
    out: str,
    plot: str | None,
    seed: int,
    log2_points: int | None,
    rtol: float,
    most: int,
    as_json: bool,
    **model_parts: Any,
) -> int:
    """Follow branches along alpha; mark where their training losses cross."""
    with progress_bar("following branches", total=len(alphas) * len(branches)) as advance:
        model = build_model(**model_parts)
        from dotphase.experiments.curve import curve
        from dotphase.storage.files import check_writable, write_dataset

        target = check_writable("--out", out, (".nc",))
        figure = plot and check_writable("--plot", plot, (".png", ".svg", ".pdf"))
        dataset = curve(
            model,
            alphas,
            branches,
            rtol=rtol,
            log2_points=log2_points,
            most=most,
            seed=seed,
            progress=lambda solution: advance(),
        )
        write_dataset(dataset, target)
        if figure:
            from dotphase.plot import curve as draw

            draw(dataset, figure)
    if as_json:
        print_json(_summary(dataset, str(target), str(figure) if figure else None))
    else:
        _print_table(dataset)
        click.echo(f"wrote {target}" + (f" and {figure}" if figure else ""))
    return 0 if bool(dataset["converged"].all()) else 3


def _summary(dataset: Any, out: str, plot: str | None) -> dict[str, Any]:
    shown = ("train_loss", "test_error", "q", "m", "V", "theta")
    return {
        "alphas": dataset["alpha"].values,
        "branches": dataset["branch"].values,
        "found": dataset["found"].values,
        "on_branch": dataset["on_branch"].values,
        "converged": dataset["converged"].values,
        "trusted": dataset["trusted"].values,
        **{name: dataset[name].values for name in shown},
        "stderr": {name: dataset[f"{name}_stderr"].values for name in shown},
        "linear_test_error": float(dataset["linear_test_error"]),
        "crossing": float(dataset["crossing"]),
        "crossing_stderr": float(dataset["crossing_stderr"]),
        "out": out,
        "plot": plot,
    }


#: Overlaps that do not vanish on a branch.
_OVERLAPS: dict[str, list[str]] = {
    "semantic": ["theta"],
    "positional": ["m"],
    "uninformed": [],
    "mixed": ["theta", "m"],
}


def _print_table(dataset: Any) -> None:
    """The branches side by side, and the crossing."""
    from rich.console import Console
    from rich.table import Table

    branches = dataset["branch"].values.tolist()
    table = Table(title="branches against alpha (? theory not trusted, - no such branch)")
    table.add_column("alpha", justify="right")
    for name in branches:
        for column in ("loss", "test error", *_OVERLAPS[name]):
            table.add_column(f"{name}\n{column}", justify="right", no_wrap=True)
    ordered = dataset.sortby("alpha")
    for alpha in ordered["alpha"].values:
        cells = [f"{alpha:.3f}"]
        for name in branches:
            point = ordered.sel(branch=name, alpha=alpha)
            if not bool(point["on_branch"]):
                cells += ["-"] * (2 + len(_OVERLAPS[name]))
                continue
            doubt = "" if bool(point["trusted"]) else "?"
            cells += [
                f"{float(point['train_loss']):.6f}{doubt}",
                f"{float(point['test_error']):.6f}",
            ]
            cells += [f"{float(point[part]):.4f}" for part in _OVERLAPS[name]]
        table.add_row(*cells)
    Console(width=max(88, Console().width)).print(table)
    click.echo(f"linear positional layer: test error {float(dataset['linear_test_error']):.6f}")
    crossing = float(dataset["crossing"])
    if crossing == crossing:
        error = float(dataset["crossing_stderr"])
        click.echo(f"the training losses cross at alpha_c = {crossing:.4f} ± {error:.4f}")
    else:
        click.echo("the training losses do not cross on this grid")
