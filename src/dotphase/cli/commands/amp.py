"""`dotphase amp`: message passing at finite dimension, beside its state evolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.finite import run_seeds, seeds_option, theory_option
from dotphase.cli.options import (
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


@click.command("amp", epilog="Example: dotphase amp --d 1000 --alpha 2 --start semantic --seeds 4")
@task_options("amp")
@seeds_option(1)
@theory_option
@out_option
@plot_option
@model_options
@json_option
def command(
    parameters: dict[str, Any],
    seeds: int,
    theory: bool | None,
    out: str | None,
    plot: str | None,
    model: Asked,
    seed: int,
    as_json: bool,
) -> int:
    """Message passing on data sets of n = round(alpha d) sentences; plot the overlaps by iteration.

    Exit code 3: some run did not converge, as can happen where the proximal map jumps; all
    are still printed.
    """

    def compute(built: Model, status: Callable[[str], None], **asked: Any) -> Any:
        from dotphase.experiments.comparison.amp import amp

        return amp(built, seed=seed, **parameters, **asked)

    what = f"message passing from the {parameters['start']} start"
    files, beside = Files(out, plot), not as_json if theory is None else theory
    return run_seeds(what, compute, "iterations", model, seeds, files, as_json, beside)
