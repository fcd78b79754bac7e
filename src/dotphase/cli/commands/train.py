"""`dotphase train`: students trained at finite dimension, many seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.finite import run_seeds, seeds_option, theory_option
from dotphase.cli.options import (
    COUNT,
    Asked,
    json_option,
    model_options,
    out_option,
    plot_option,
    task_options,
)
from dotphase.cli.output import Files

if TYPE_CHECKING:
    from dotphase.model import Model


@click.command("train", epilog="Example: dotphase train --d 1000 --alpha 1.5 --start semantic")
@task_options("train")
@seeds_option(8)
@click.option("--batch", type=COUNT, default=None,
              help="Runs trained at once [default: what fits into memory].")  # fmt: skip
@click.option("--hessian", is_flag=True,
              help="Also the smallest curvatures at each trained point.")  # fmt: skip
@click.option("--record", is_flag=True,
              help="Also every step: loss, test error and overlaps, into the dataset.")  # fmt: skip
@theory_option
@out_option
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any],
    seeds: int,
    batch: int | None,
    hessian: bool,
    record: bool,
    theory: bool | None,
    out: str | None,
    plot: str | None,
    model: Asked,
    seed: int,
    as_json: bool,
) -> int:
    """Train students on data sets of n = round(alpha d) sentences; plot theta against m.

    Says how many found which mechanism, with means for each, beside the theory at the same d.

    Exit code 3: some run did not converge; all are still printed. Optimizers with steps of a fixed
    size (gd, adam, sgd, momentum) may end with their last step before that.
    """

    def compute(built: Model, status: Callable[[str], None], **asked: Any) -> Any:
        from dotphase.training.run import train

        def step(taken: int, most: int) -> None:
            status(f"step {taken} of at most {most}")

        asked |= {"batch": batch, "record": record, "on_step": step}
        return train(built, seed=seed, **parameters, **asked)

    what = f"training from the {parameters['start']} start"
    look = partial(_curvatures, parameters, seed) if hessian else None
    files, beside = Files(out, plot), not as_json if theory is None else theory
    return run_seeds(what, compute, "mechanisms", model, seeds, files, as_json, beside, look)


def _curvatures(
    parameters: dict[str, Any], seed: int, model: Model, result: Any
) -> dict[int, dict[str, Any]]:
    from dotphase.training.hessian import curvature

    found = {}
    for run in result.runs:
        place = parameters["alpha"], parameters["d"], run.weights
        found[run.seed] = {"hessian": curvature(model, *place, run=run.seed, seed=seed).to_dict()}
    return found
