"""`dotphase train`: students trained at finite dimension, many seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.options import POSITIVE, task_options
from dotphase.cli.runs import RunsRequest, compute_and_print, runs_options

if TYPE_CHECKING:
    from dotphase.model import Model
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

    def compute(model: Model, progress: ProgressCallback) -> Any:
        from dotphase.training.run import train

        return train(
            model, seed=request.seed, seeds=request.seeds, runs_per_batch=runs_per_batch,
            record=record, progress=progress, **parameters,
        )  # fmt: skip

    def measure_hessian(model: Model, result: Any) -> dict[int, dict[str, Any]]:
        from dotphase.training.hessian import curvature

        alpha, d = parameters["alpha"], parameters["d"]
        return {
            run.index: {
                "hessian": curvature(
                    model,
                    alpha,
                    d,
                    run.weights,
                    index=run.index,
                    seed=request.seed,
                    teacher_norm=parameters["teacher_norm"],
                ).to_dict()
            }
            for run in result.runs
        }

    title = f"training from the {parameters['start']} start"
    inspect = measure_hessian if hessian else None
    return compute_and_print(request, title, compute, "mechanisms", inspect)
