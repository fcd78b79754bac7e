"""`python -m reproduction`: the figures and tables of the paper, compared line by line."""

from __future__ import annotations

import json
import os
import signal
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import dotphase as dp
from reproduction.items import ITEMS, PAPER, in_order
from reproduction.progress import show_progress


@click.command(
    epilog="Example: python -m reproduction transition gamp --quick --out out/reproduction",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.argument("names", metavar="[NAME ...]", nargs=-1)
@click.option("--quick", "scale", flag_value="quick", default="quick", show_default=False,
              help="Minutes on two cores: small d, few seeds, coarse grids [default].")  # fmt: skip
@click.option("--full", "scale", flag_value="full", show_default=False,
              help="The sizes of the paper (a GPU helps).")  # fmt: skip
@click.option("--out", metavar="DIR",
              help="Folder of the report; finished parts in it are used again.")  # fmt: skip
@click.option("--engine", type=click.Choice(("local", "dask", "serial")), default="local",
              help="Processes on this machine, a Dask cluster, or this process alone.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS",
              help="Existing Dask cluster; without it one is started here.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1),
              help="Processes to start [default: one for every core].")  # fmt: skip
@click.option("--list", "only_list", is_flag=True, help="Print the names and stop.")
@click.option("--rewrite", is_flag=True,
              help="Write the report again from DIR/report.json; compute nothing.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    names: tuple[str, ...],
    scale: str,
    out: str | None,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    only_list: bool,
    rewrite: bool,
    as_json: bool,
) -> int:
    """Reproduce figures and tables of the paper, and judge each published number.

    Names select items; the default is all of the paper, and --list also prints those beyond it.
    Writes DIR/report.html (one file, with all figures), DIR/report.md, DIR/report.json, DIR/figures
    and DIR/data. An item that fails is reported
    and stops no other (exit code 3). Independent points are computed as a study and saved one by
    one.
    """
    if only_list:
        beyond = [name for name in ITEMS if name not in PAPER]
        click.echo("\n".join([*PAPER, "beyond the paper:", *beyond]))
        return 0
    if out is None:
        raise dp.InvalidInput("--out", out, "must be the folder of the report")
    chosen = in_order(names)
    where = {"engine": engine, "scheduler": scheduler, "workers": workers}
    settings: Any = {"scale": scale, "out": out, "where": where}
    # --help and --list do not wait for the numerical libraries.
    from reproduction.run import reproduce, rewrite_report

    if rewrite:
        _print(rewrite_report(out), as_json)
        return 0
    try:
        with show_progress(len(chosen)) as progress:
            report = reproduce(chosen, **settings, progress=progress)
    except KeyboardInterrupt:
        click.echo(f"dotphase: interrupted; finished parts are in {out}", err=True)
        return 130
    _print(report, as_json)
    return 3 if report.failed else 0


def _print(report: Any, as_json: bool) -> None:
    from reproduction.verdict import AGREES, DIFFERS, OFF

    counts = {verdict: report.count(verdict) for verdict in (AGREES, OFF, DIFFERS)}
    if as_json:
        summary = dp.results.to_json_types(_summary(report, counts))
        click.echo(json.dumps(summary, allow_nan=False))
        return
    for outcome in report.outcomes:
        for row in outcome.rows:
            if row.verdict == DIFFERS:
                at = ", ".join(f"{name} = {value}" for name, value in row.at.items())
                click.echo(f"differs: {outcome.name}, {row.quantity} at {at}")
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    page = report.folder / "report.html"
    click.echo(f"wrote {report.folder / 'report.md'}")
    click.echo(f"wrote {page}: open it in a browser")
    open_page(page)


def open_page(page: Path) -> None:
    """Open the page where a person looks at a screen."""
    screen = sys.platform in ("darwin", "win32") or any(
        map(os.getenv, ("DISPLAY", "WAYLAND_DISPLAY"))
    )
    if screen and sys.stdout.isatty() and not os.getenv("CI"):
        webbrowser.open(page.resolve().as_uri())


def _summary(report: Any, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "scale": report.scale,
        "report": str(report.folder / "report.md"),
        "html": str(report.folder / "report.html"),
        "json": str(report.folder / "report.json"),
        "verdicts": counts,
        "failed": list(report.failed),
        "items": [
            {"name": out.name, "seconds": out.seconds, "figures": list(out.figures),
             "rows": [row.to_dict() for row in out.rows], "failure": out.failure}
            for out in report.outcomes
        ],
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; bad input is one line on stderr."""
    try:
        result = command.main(arguments, prog_name="python -m reproduction", standalone_mode=False)
    except click.ClickException as error:
        return _refuse(error.format_message())
    except dp.InvalidInput as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename or 'the output'} cannot be read or written ({error})")
    except (click.Abort, KeyboardInterrupt):
        click.echo("dotphase: interrupted", err=True)
        return 130
    return result if isinstance(result, int) else 0


def _refuse(message: str) -> int:
    click.echo("dotphase: " + " ".join(message.split()), err=True)
    return 2


if __name__ == "__main__":
    # SIGTERM ends the program as Ctrl-C does: finished parts are kept and named.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
