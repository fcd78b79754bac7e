"""`dotphase amp`: message passing at finite dimension, with its state evolution."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import task_options
from dotphase.cli.runs import RunsRequest, compute_and_print, runs_options
from dotphase.runtime.progress import ProgressCallback


@click.command("amp", epilog="Example: dotphase amp --d 1000 --alpha 2 --start semantic --seeds 4")
@task_options("amp")
@runs_options(seeds=1)
def command(parameters: dict[str, Any], request: RunsRequest) -> int:
    """Message passing on data sets of n = round(alpha d) sentences; plot the overlaps by iteration.

    Exit code 3: a run did not converge, as can happen where the proximal map jumps. All runs are
    still printed.
    """

    def compute(model: dp.Model, progress: ProgressCallback) -> Any:
        return dp.amp(
            model, seed=request.seed, seeds=request.seeds, progress=progress, **parameters
        )

    title = f"message passing from the {parameters['start']} start"
    return compute_and_print(request, title, compute, "iterations")
