"""`dotphase amp`: message passing at finite dimension, beside its state evolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.finite import run_seeds, seeds_option
from dotphase.cli.options import Asked, json_option, model_options, plot_option, task_options

if TYPE_CHECKING:
    from dotphase.model import Model


@click.command("amp", epilog="Example: dotphase amp --d 1000 --alpha 2 --start semantic --seeds 4")
@task_options("amp")
@seeds_option(1)
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any], seeds: int, plot: str | None, model: Asked, seed: int, as_json: bool
) -> int:
    """Message passing on data sets of n = round(alpha d) sentences; plot the overlaps by iteration.

    Exit code 3: some run did not converge, as can happen where the proximal map jumps; all
    are still printed.
    """

    def compute(built: Model, **asked: Any) -> Any:
        from dotphase.experiments.message_passing import amp

        return amp(built, seed=seed, **parameters, **asked)

    what = f"message passing from the {parameters['start']} start"
    return run_seeds(what, compute, "iterations", model, seeds, plot, as_json)
