"""`dotphase compare`: theory beside training of one model, with a verdict at every point."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.descent import DYNAMICS, SOLVER, THEORY, theory_options
from dotphase.cli.finite import seeds_option
from dotphase.cli.options import (
    COUNT,
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
from dotphase.config.parameters import Integer, Number, Parameter

#: Steps that theory and students share.
STEPS = {
    "lr": Parameter("lr", Number(above=0), 4.0, "Dynamics: size of a step."),
    "steps": Parameter("steps", Integer(1), 127, "Dynamics: steps to take."),
}
#: Columns of the table, and how they are written.
SHOWN = {"train_loss": ".6f", "test_error": ".6f", "theta": ".4f", "m": ".4f"}


@click.command(
    "compare",
    epilog="Example: dotphase compare --alphas 0.8:2:4 --d 500 --seeds 4 --plot compare.png",
)
@alphas_option
@click.option("--d", type=COUNT, default=1000, help="Dimension of a token.")
@seeds_option(4)
@branches_option("Branches, and starts of training.")
@option(THEORY)
@option(STEPS["lr"])
@option(STEPS["steps"])
@option(DYNAMICS["ensemble"])
@click.option("--amp", is_flag=True, help="Message passing as well.")
@out_option
@plot_option
@task_options("theory", *SOLVER, rtol=1e-2, max_log2_points=14)
@model_options
@json_option
def command(
    alphas: list[float],
    d: int,
    seeds: int,
    branches: list[str],
    theory: str,
    amp: bool,
    out: str | None,
    plot: str | None,
    parameters: dict[str, Any],
    model: Asked,
    seed: int,
    as_json: bool,
    **descent: Any,
) -> int:
    """Solve a model and train it on one grid of alpha; say at each point whether they agree.

    With the dynamics, students take the steps that the theory is about.

    Exit code 3: the solver did not converge somewhere; all points are still printed.
    """
    parameters = theory_options(theory, parameters, descent)
    with progress_bar("comparing", total=3 if amp else 2) as advance:
        files = Files(out, plot)
        built = model.build()
        from dotphase.experiments.comparison.compare import compare

        dataset = compare(
            built, alphas, d, seeds=seeds, branches=branches, theory=theory, amp=amp, seed=seed,
            progress=lambda source: advance(), **parameters,
        )  # fmt: skip
    with files.written_after(dataset, "compare"):
        if as_json:
            print_json({**model.to_dict(), **_summary(dataset), **files.to_dict()})
        else:
            _print_table(dataset)
    if not as_json:
        files.tell()
    return 0 if bool(dataset["converged"].all()) else 3


def _summary(dataset: Any) -> dict[str, Any]:
    """Every number by source, branch and alpha; verdicts by branch and alpha."""
    sources = {
        str(name): {part: dataset[part].sel(source=name).values for part in (*SHOWN, "q")}
        | {"stderr": {part: dataset[f"{part}_stderr"].sel(source=name).values for part in SHOWN}}
        for name in dataset["source"].values
    }
    told = ("verdict", "score", "worst", "stayed", "trusted", "on_branch", "converged")
    return {
        "alphas": dataset["alpha"].values,
        "branches": dataset["branch"].values,
        "theory_name": dataset.attrs["theory"],
        "d": dataset.attrs["d"],
        "seeds": dataset.attrs["seeds"],
        **sources,
        **{name: dataset[name].values for name in told},
        "linear_test_error": float(dataset["linear_test_error"]),
    }


def _print_table(dataset: Any) -> None:
    """A line for each source at every point, and the verdict."""
    from rich.console import Console
    from rich.table import Table

    which = str(dataset.attrs["theory"]).replace("_", " ")
    title = f"{which} and training at d = {dataset.attrs['d']}"
    table = Table(title=title)
    for name in ("alpha", "branch", "source", *SHOWN, "verdict"):
        side = "left" if name in ("branch", "source", "verdict") else "right"
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for alpha in sorted(dataset["alpha"].values):
        for branch in dataset["branch"].values:
            point = dataset.sel(alpha=alpha, branch=branch)
            score = float(point["score"])
            verdict = str(point["verdict"].item())
            verdict += f" {score:.2f}" if score == score else ""
            verdict += "" if bool(point["trusted"]) or not bool(point["on_branch"]) else " ?"
            for number, source in enumerate(dataset["source"].values):
                first = [f"{alpha:.3f}", str(branch)] if number == 0 else ["", ""]
                one = point.sel(source=source)
                cells = [_cell(one, name, form) for name, form in SHOWN.items()]
                table.add_row(*first, str(source), *cells, verdict if number == 0 else "")
    Console(width=max(140, Console().width)).print(table)
    click.echo(
        "in brackets: standard errors of the last digits; beside the verdict: the largest\n"
        "difference over what is allowed (3 standard errors, 1% and 10/d); ?: the theory is not "
        "trusted there"
    )


def _cell(point: Any, name: str, form: str) -> str:
    value, error = float(point[name]), float(point[f"{name}_stderr"])
    if value != value:
        return "-"
    digits = int(form[1])
    return f"{value:{form}}" + (f"({error * 10**digits:.0f})" if error == error else "")
