"""What the commands print: JSON on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import click

from dotphase.plain import plain

#: Seconds of work before a progress bar appears.
QUIET = 2.0


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that are not finite become null."""
    click.echo(json.dumps(plain(value), allow_nan=False))


class Advance(Protocol):
    """Called with the number of points newly finished."""

    def __call__(self, done: int = 1) -> None: ...


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Advance]:
    """A bar on stderr once the work has taken two seconds; nothing unless stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done=1: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}")]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    begun = time.monotonic()

    import threading

    timer = threading.Timer(QUIET, bar.start)
    timer.daemon = True
    timer.start()

    def advance(done: int = 1) -> None:
        bar.advance(task, done)
        if time.monotonic() - begun > QUIET:
            bar.refresh()

    try:
        yield advance
    finally:
        timer.cancel()
        bar.stop()
