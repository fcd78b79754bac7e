"""`dotphase train`: students trained at finite dimension, many seeds."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import POSITIVE, task_options
from dotphase.cli.runs import RunsRequest, compute_and_print, runs_options
from dotphase.runtime.progress import ProgressCallback


@click.command("train", epilog="Example: dotphase train --d 1000 --alpha 1.5 --start semantic")
@task_options("train")
@click.option("--runs-per-batch", type=POSITIVE, default=None,
              help="Runs trained at once [default: as many as memory allows].")  # fmt: skip
@click.option("--hessian", is_flag=True,
              help="Also the smallest curvatures at each trained point.")  # fmt: skip
@click.option("--record", is_flag=True,
              help="Also loss, test error and overlaps at every step.")  # fmt: skip
@runs_options(seeds=8)
def command(
    parameters: dict[str, Any],
    runs_per_batch: int | None,
    hessian: bool,
    record: bool,
    request: RunsRequest,
) -> int:
    """Train students on data sets of n = round(alpha d) sentences; plot theta against m.

    Prints how many runs found each mechanism, with means for each and the theory at the same d.

    Exit code 3: a run did not converge. All runs are still printed. Optimizers with a fixed step
    size (gd, adam, sgd, momentum) may end with their last step instead.
    """

    def compute(model: dp.Model, progress: ProgressCallback) -> Any:
        return dp.train(
            model, seed=request.seed, seeds=request.seeds, runs_per_batch=runs_per_batch,
            record=record, progress=progress, **parameters,
        )  # fmt: skip

    def measure_hessian(model: dp.Model, result: Any) -> dict[int, dict[str, Any]]:
        data = {name: parameters[name] for name in ("alpha", "d", "teacher_norm")}
        curvatures = {
            run.index: dp.curvature(
                model, weights=run.weights, index=run.index, seed=request.seed, **data
            )
            for run in result.runs
        }
        return {index: {"hessian": bent.to_dict()} for index, bent in curvatures.items()}

    title = f"training from the {parameters['start']} start"
    inspect = measure_hessian if hessian else None
    return compute_and_print(request, title, compute, "mechanisms", inspect)
