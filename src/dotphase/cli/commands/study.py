"""`dotphase study`: sweeps that survive being killed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.options import json_option, model_reference_options, where_options
from dotphase.cli.output import print_json

if TYPE_CHECKING:
    from dotphase.study.run import Progress


@click.group("study", epilog="Example: dotphase study run studies/branches.toml --out branches")
def command() -> None:
    """Sweeps over parameters and seeds, kept point by point."""


@command.command(
    "run", epilog="Example: dotphase study run studies/branches.toml --out branches --workers 2"
)
@click.argument("spec", metavar="SPEC.toml")
@click.option("--out", required=True, metavar="DIR",
              help="Folder of the study: new, empty, or one to go on with.")  # fmt: skip
@where_options
@model_reference_options
@json_option
def run(
    spec: str,
    out: str,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    reference: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compute the points of a study that are not done yet; failed ones are tried again.

    Every finished point is on disk before the next one starts, and DIR/study.nc is written
    at the end. The file of a model that SPEC.toml or --model names is executed, here and by the
    workers. Exit code 3: some point failed or did not converge; the rest is there.
    """
    from dotphase.errors import Interrupted
    from dotphase.study.journal import read_status
    from dotphase.study.run import run_study
    from dotphase.study.spec import read_spec

    interrupted = False
    study = read_spec(spec, reference, settings)
    with _progress(study.task) as show:
        try:
            dataset: Any = run_study(
                study, out, on=engine, scheduler=scheduler, workers=workers, progress=show
            )
        except Interrupted as stop:
            interrupted, dataset = True, stop.finished
    status = read_status(out)
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
def status(folder: str, as_json: bool) -> int:
    """What is done, being computed and failed in a study's folder, and how long it will take."""
    from dotphase.study.journal import read_status

    found = read_status(folder)
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(str(found))
    return 0


@contextmanager
def _progress(what: str) -> Iterator[Callable[[Progress], None]]:
    """Points done, rate and time left, on one line of a terminal; elsewhere only what is wrong."""
    told = False

    def tell(now: Progress) -> None:
        nonlocal told
        if now.damaged and not told:
            text = "are damaged on the disk: these points are computed again"
            click.echo(f"dotphase: {now.damaged} rows of the journal {text}", err=True)
        told = True

    if not sys.stderr.isatty():
        yield tell
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    shown = 0.0
    with Live(Text(f"{what} study"), console=Console(stderr=True), transient=True) as live:

        def show(now: Progress) -> None:
            nonlocal shown
            tell(now)
            if time.monotonic() - shown < 0.1 and now.done + now.failed < now.total:
                return  # drawing must not hold up the points
            shown = time.monotonic()
            live.update(Text(_line(what, now)))

        yield show


def _line(what: str, now: Progress) -> str:
    line = f"{what} study: {now.done} of {now.total} points"
    if now.failed:
        line += f", {now.failed} failed"
    if now.rate is not None and now.seconds_left is not None:
        line += f", {now.rate:.3g} a second, {duration(now.seconds_left)} left"
    return line


def duration(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
