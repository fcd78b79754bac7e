"""`dotphase study`: sweeps that can be interrupted and resumed."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import POSITIVE, json_option, model_reference_options, option
from dotphase.cli.output import print_json
from dotphase.config.parameters import Choice, Number, Parameter
from dotphase.runtime.progress import ProgressCallback, ProgressEvent

MAX_SECONDS = Parameter("max_seconds", Number(above=0), None, "Time after which a point fails.")
#: Shortest time between two updates of the terminal, so that drawing does not delay the points.
MIN_REDRAW_SECONDS = 0.1


@click.group("study", epilog="Example: dotphase study run studies/branches.toml --out branches")
def command() -> None:
    """Sweeps over parameters and seeds, stored point by point."""


@command.command(
    "run", epilog="Example: dotphase study run studies/branches.toml --out branches --workers 2"
)
@click.argument("spec", metavar="SPEC.toml")
@click.option("--out", required=True, metavar="DIR",
              help="Folder of the study: new, empty, or one to resume.")  # fmt: skip
@click.option("--engine", type=Choice(("local", "dask", "serial")), default="local",
              help="Local processes, a Dask cluster, or this process alone.")  # fmt: skip
@click.option("--scheduler", default=None, metavar="ADDRESS",
              help="Existing Dask cluster [default: start one on this machine].")  # fmt: skip
@click.option("--workers", type=POSITIVE, default=None,
              help="Processes to start [default: one per core].")  # fmt: skip
@option(MAX_SECONDS)
@model_reference_options
@json_option
def run(
    spec: str,
    out: str,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    max_seconds: float | None,
    reference: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compute the unfinished points of a study; failed ones are tried again.

    Every finished point is on disk before the next one starts, and DIR/study.nc is written at the
    end. If SPEC.toml or --model names a model in a Python file, this process and the workers
    EXECUTE that file. Exit code 3: a point failed or did not converge; the others are written.
    """
    interrupted = False
    study = dp.read_spec(spec, reference, settings)
    with _live_status(study.task) as show:
        try:
            dataset: Any = dp.run_study(
                study, out, engine=engine, scheduler=scheduler, workers=workers,
                max_seconds=max_seconds, progress=show,
            )  # fmt: skip
        except dp.Interrupted as stop:
            interrupted, dataset = True, stop.finished
    status = dp.read_status(out)
    unconverged = 0
    if "converged" in dataset:
        unconverged = int((dataset["done"] & ~dataset["converged"]).sum())
    if as_json:
        sizes = {"dimensions": dict(dataset.sizes)}
        print_json({**status.to_dict(), "unconverged": unconverged, **sizes})
    else:
        click.echo(str(status))
        if unconverged:
            click.echo(f"  {unconverged} did not converge")
    if interrupted:
        click.echo(f"dotphase: interrupted; {status.done} points are kept", err=True)
        return 130
    return 3 if status.failed or unconverged else 0


@command.command("status", epilog="Example: dotphase study status branches")
@click.argument("folder", metavar="DIR")
@json_option
def show_status(folder: str, as_json: bool) -> int:
    """Finished, running and failed points of a study's folder, and the time left."""
    status = dp.read_status(folder)
    if as_json:
        print_json(status.to_dict())
    else:
        click.echo(str(status))
    return 0


@command.command("merge", epilog="Example: dotphase study merge branches more-branches")
@click.argument("folder", metavar="DIR")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@json_option
def merge(folder: str, sources: tuple[str, ...], as_json: bool) -> int:
    """Add the points of the studies in SOURCE... to the one in DIR, which may be new.

    The studies need the same task and model. The axes of DIR become the union of all axes; points
    that no study has computed are pending.
    """
    dataset = dp.analysis.merge_studies(folder, *sources)
    status = dp.read_status(folder)
    if as_json:
        print_json({**status.to_dict(), "dimensions": dict(dataset.sizes)})
    else:
        click.echo(str(status))
    return 0


@contextmanager
def _live_status(task: str) -> Iterator[ProgressCallback]:
    """Show finished points, rate and time left on a terminal; elsewhere only warnings."""
    warned = False

    def warn(event: ProgressEvent) -> None:
        nonlocal warned
        if event.result.damaged and not warned:
            text = "are damaged on disk; their points are computed again"
            click.echo(f"dotphase: {event.result.damaged} rows of the journal {text}", err=True)
        warned = True

    if not sys.stderr.isatty():
        yield warn
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    last_update = 0.0
    with Live(Text(f"{task} study"), console=Console(stderr=True), transient=True) as live:

        def show(event: ProgressEvent) -> None:
            nonlocal last_update
            warn(event)
            if time.monotonic() - last_update < MIN_REDRAW_SECONDS and event.done != event.total:
                return
            last_update = time.monotonic()
            live.update(Text(status_line(event)))

        yield show


def status_line(event: ProgressEvent) -> str:
    """Format finished and failed points, rate and time left of a study's progress event."""
    progress = event.result
    line = f"{event.stage}: {event.done - progress.failed} of {event.total} points"
    if progress.failed:
        line += f", {progress.failed} failed"
    if progress.rate is not None:
        line += f", {progress.rate:.3g} per second, {duration(progress.seconds_left)} left"
    return line


def duration(seconds: float) -> str:
    """Format a duration in its largest convenient unit."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
