"""`dotphase amp`: message passing at finite dimension, beside its state evolution."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import ALPHA, Number, build_model, json_option, model_options
from dotphase.cli.output import print_json, progress_bar
from dotphase.cli.train import STARTS


@click.command("amp", epilog="Example: dotphase amp --d 1000 --alpha 2 --start semantic --seeds 4")
@click.option("--d", type=int, required=True, help="Dimension of a token.")
@click.option("--alpha", type=ALPHA, required=True, help="Sentences per dimension n/d, > 0.")
@click.option("--start", type=click.Choice(STARTS), default="semantic", show_default=True,
              help="Where the iteration begins.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True,
              help="Number of runs, each with its own data.")  # fmt: skip
@click.option("--damping", type=Number(at_least=0, at_most=0.99), default=None,
              help="Share of the old values in a step [default: 0.5; positional 0.8].")  # fmt: skip
@click.option("--iterations", type=click.IntRange(min=1), default=400, show_default=True,
              help="Most iterations.")  # fmt: skip
@click.option("--plot", default=None, metavar="F.png",
              help="Overlaps by iteration beside state evolution (.png, .svg, .pdf).")  # fmt: skip
@model_options
@json_option
def command(
    d: int,
    alpha: float,
    start: str,
    seeds: int,
    damping: float | None,
    iterations: int,
    plot: str | None,
    seed: int,
    as_json: bool,
    **model_parts: Any,
) -> int:
    """Message passing on data sets of n = round(alpha d) sentences.

    Exit code 3: some run did not converge, as can happen where the proximal map jumps; all
    are still printed.
    """
    interrupted = False
    figure = None
    with progress_bar(f"message passing from the {start} start", total=seeds) as advance:
        model = build_model(**model_parts)
        from dotphase.errors import Interrupted
        from dotphase.experiments.message_passing import amp

        if plot:
            from dotphase.storage.files import check_writable

            figure = check_writable("--plot", plot, (".png", ".svg", ".pdf"))
        try:
            result = amp(
                model, alpha, d, seeds=seeds, start=start, damping=damping, iterations=iterations,
                seed=seed, on_run=lambda run: advance(),
            )  # fmt: skip
        except Interrupted as stop:
            interrupted, result = True, stop.finished  # type: ignore[assignment]
        if figure:
            from dotphase.figures.iterations import plot_iterations

            plot_iterations(result, figure)
    if as_json:
        print_json(result.to_dict())
    else:
        click.echo(str(result))
    if interrupted:
        click.echo(f"dotphase: interrupted after {len(result.runs)} of {seeds} runs", err=True)
        return 130
    return 0 if result.converged else 3
