"""`dotphase train`: students trained at finite dimension, many seeds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.finite import run_seeds, seeds_option
from dotphase.cli.options import COUNT, Asked, json_option, model_options, plot_option, task_options

if TYPE_CHECKING:
    from dotphase.model import Model


@click.command("train", epilog="Example: dotphase train --d 1000 --alpha 1.5 --start semantic")
@task_options("train")
@seeds_option(8)
@click.option("--batch", type=COUNT, default=None,
              help="Runs trained at once [default: what fits into memory].")  # fmt: skip
@click.option("--hessian", is_flag=True,
              help="Also the smallest curvatures at each trained point.")  # fmt: skip
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any],
    seeds: int,
    batch: int | None,
    hessian: bool,
    plot: str | None,
    model: Asked,
    seed: int,
    as_json: bool,
) -> int:
    """Train students on data sets of n = round(alpha d) sentences; plot theta against m.

    Exit code 3: some run did not converge; all are still printed.
    """

    def compute(built: Model, **asked: Any) -> Any:
        from dotphase.training.run import train

        return train(built, seed=seed, batch=batch, **parameters, **asked)

    what = f"training from the {parameters['start']} start"
    look = partial(_curvatures, parameters, seed) if hessian else None
    return run_seeds(what, compute, "mechanisms", model, seeds, plot, as_json, look)


def _curvatures(
    parameters: dict[str, Any], seed: int, model: Model, result: Any
) -> dict[int, dict[str, Any]]:
    from dotphase.training.hessian import curvature

    found = {}
    for run in result.runs:
        place = parameters["alpha"], parameters["d"], run.weights
        found[run.seed] = {"hessian": curvature(model, *place, run=run.seed, seed=seed).to_dict()}
    return found
