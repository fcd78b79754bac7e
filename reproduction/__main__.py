"""`python -m reproduction`: the figures and tables of the paper, compared line by line."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import json_option, prepare_jax, where_options
from dotphase.cli.output import print_json, progress_bar


@click.command(
    "reproduce", epilog="Example: python -m reproduction transition gamp --quick --out reproduction"
)
@click.argument("names", metavar="[NAME ...]", nargs=-1)
@click.option("--quick", "scale", flag_value="quick", default="quick",
              help="Minutes on two cores: small d, few seeds, coarse grids [default].")  # fmt: skip
@click.option("--full", "scale", flag_value="full", help="The sizes of the paper (a GPU helps).")
@click.option("--out", required=True, metavar="DIR",
              help="Folder of the report; finished parts found there are used again.")  # fmt: skip
@where_options
@click.option("--list", "only_list", is_flag=True, is_eager=True, expose_value=False,
              callback=lambda context, option, value: _list(context) if value else None,
              help="Print the names and stop.")  # fmt: skip
@json_option
def command(
    names: tuple[str, ...],
    scale: str,
    out: str,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    as_json: bool,
) -> int:
    """Draw every figure, make every table, and say of each published number whether it holds.

    Names select figures; all of the paper if none is given (--list names those beyond it as
    well). Writes DIR/report.md, DIR/report.json,
    DIR/figures and DIR/data. A figure that fails is reported and stops no other (exit code 3).
    What is made of independent points is computed as a study, kept point by point.
    """
    from reproduction.items import in_order

    chosen = in_order(names)
    with progress_bar("reproducing", total=len(chosen)) as bar:
        prepare_jax()
        from reproduction.run import ItemResult, reproduce

        def tell(item: str, part: str) -> None:
            bar.log(f"{item}: {part}")

        def finished(outcome: ItemResult) -> None:
            how = f"FAILED, {outcome.failure}" if outcome.failure else "done"
            bar.log(f"{outcome.name}: {how} ({outcome.seconds:.0f} s)")
            bar.advance()

        where = {"on": engine, "scheduler": scheduler, "workers": workers}
        asked: Any = {"scale": scale, "out": out, "where": where}
        try:
            report = reproduce(chosen, **asked, progress=tell, finished=finished)
        except KeyboardInterrupt:
            click.echo(f"dotphase: interrupted; finished parts are kept in {out}", err=True)
            return 130
    from dotphase.experiments.comparison.agreement import AGREES, DIFFERS
    from reproduction.verdict import OFF

    counts = {verdict: report.count(verdict) for verdict in (AGREES, OFF, DIFFERS)}
    if as_json:
        print_json(_summary(report, counts))
    else:
        for outcome in report.outcomes:
            for row in outcome.rows:
                if row.verdict == DIFFERS:
                    at = ", ".join(f"{name} = {value}" for name, value in row.at.items())
                    click.echo(f"differs: {outcome.name}, {row.quantity} at {at}")
        click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
        click.echo(f"wrote {report.folder / 'report.md'}")
    return 3 if report.failed else 0


def _summary(report: Any, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "scale": report.scale,
        "report": str(report.folder / "report.md"),
        "json": str(report.folder / "report.json"),
        "verdicts": counts,
        "failed": list(report.failed),
        "items": [
            {"name": out.name, "seconds": out.seconds, "figures": list(out.figures),
             "rows": [row.to_dict() for row in out.rows], "failure": out.failure}
            for out in report.outcomes
        ],
    }  # fmt: skip


def _list(context: click.Context) -> None:
    from reproduction.items import ITEMS, PAPER

    beyond = [name for name in ITEMS if name not in PAPER]
    click.echo("\n".join([*PAPER, "beyond the paper:", *beyond]))
    context.exit(0)
