"""`dotphase train`: students trained at finite dimension, many seeds."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import ALPHA, Number, build_model, json_option, model_options
from dotphase.cli.output import print_json, progress_bar

STARTS = ("semantic", "positional", "mixed", "random")
OPTIMIZERS = ("lbfgs", "gd", "adam", "sgd")


@click.command("train", epilog="Example: dotphase train --d 1000 --alpha 1.5 --start semantic")
@click.option("--d", type=int, required=True, help="Dimension of a token.")
@click.option("--alpha", type=ALPHA, required=True, help="Sentences per dimension n/d, > 0.")
@click.option("--start", type=click.Choice(STARTS), default="semantic", show_default=True,
              help="Where training begins.")  # fmt: skip
@click.option("--scale", type=Number(above=0), default=None,
              help="Standard deviation of a random start's entries [default: 0.1].")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=8, show_default=True,
              help="Number of runs, each with its own data.")  # fmt: skip
@click.option("--optimizer", type=click.Choice(OPTIMIZERS), default="lbfgs", show_default=True,
              help="How the training loss is minimised.")  # fmt: skip
@click.option("--steps", type=click.IntRange(min=1), default=None,
              help="Most steps [default: the optimiser's own; gd 5000, adam 2500].")  # fmt: skip
@click.option("--lr", type=Number(above=0), default=None,
              help="Size of a step [default: gd and sgd 0.15, adam 0.01].")  # fmt: skip
@click.option("--batch", type=click.IntRange(min=1), default=None,
              help="Runs trained at once [default: what fits into memory].")  # fmt: skip
@click.option("--dtype", type=click.Choice(("float64", "float32")), default="float64",
              show_default=True, help="Floating-point precision.")  # fmt: skip
@click.option("--hessian", is_flag=True,
              help="Also the smallest curvatures at each trained point.")  # fmt: skip
@click.option("--plot", default=None, metavar="F.png",
              help="Scatter of theta against m, by mechanism (.png, .svg, .pdf).")  # fmt: skip
@model_options
@json_option
def command(
    d: int,
    alpha: float,
    start: str,
    scale: float | None,
    seeds: int,
    optimizer: str,
    steps: int | None,
    lr: float | None,
    batch: int | None,
    dtype: str,
    hessian: bool,
    plot: str | None,
    seed: int,
    as_json: bool,
    **model_parts: Any,
) -> int:
    """Train students on data sets of n = round(alpha d) sentences.

    Exit code 3: some run did not converge; all are still printed.
    """
    interrupted = False
    figure = None
    with progress_bar(f"training from the {start} start", total=seeds) as advance:
        model = build_model(**model_parts)
        from dotphase.errors import Interrupted
        from dotphase.training.run import train

        if plot:
            from dotphase.storage.files import check_writable

            figure = check_writable("--plot", plot, (".png", ".svg", ".pdf"))
        try:
            result = train(
                model, alpha, d, seeds=seeds, start=start, scale=scale, optimizer=optimizer,
                steps=steps, lr=lr, seed=seed, dtype=dtype, batch=batch,
                on_run=lambda run: advance(),
            )  # fmt: skip
        except Interrupted as stop:
            interrupted, result = True, stop.finished  # type: ignore[assignment]
        shown = result.to_dict()
        if hessian and not interrupted:
            from dotphase.training.hessian import curvature

            for run, row in zip(result.runs, shown["runs"], strict=True):
                at = curvature(model, alpha, d, run.weights, run=run.seed, seed=seed)
                row["hessian"] = at.to_dict()
        if figure:
            from dotphase.plot import mechanisms as draw

            draw(result, figure)
    if as_json:
        print_json(shown)
    else:
        click.echo(str(result))
        for row in shown["runs"]:
            if "hessian" in row:
                at = row["hessian"]
                click.echo(f"  run {row['seed']}: {at['verdict']}, smallest curvature "
                           f"{at['smallest']:.6g}")  # fmt: skip
    if interrupted:
        click.echo(f"dotphase: interrupted after {len(result.runs)} of {seeds} runs", err=True)
        return 130
    return 0 if result.converged else 3
