"""Progress of the reproduction on stderr: a bar on a terminal, lines of text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:  # --help does not wait for the numerical libraries
    from dotphase.results import ProgressEvent


@contextmanager
def show_progress(total: int) -> Iterator[Callable[[ProgressEvent], None]]:
    """Show the events that the yielded callback receives, out of `total` items."""
    if not sys.stderr.isatty():
        yield lambda event: click.echo(event.stage, err=True)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("reproducing", total=total)
        yield lambda event: bar.update(task, description=event.stage, completed=event.done)
