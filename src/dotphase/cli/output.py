"""What the commands print: JSON on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from dotphase.cli import compiling
from dotphase.config.serialization import to_json_types

#: Seconds of work before a progress bar appears.
QUIET = 2.0


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that are not finite become null."""
    click.echo(json.dumps(to_json_types(value), allow_nan=False))


def echo(result: object) -> None:
    """A result in words; on a terminal, what warns is red."""
    from dotphase.config.formatting import WARNING_PREFIXES

    for line in str(result).split("\n"):
        click.secho(line, fg="red" if line.lstrip().startswith(WARNING_PREFIXES) else None)


class Files:
    """The dataset and the figure that a command is asked for, checked before any work."""

    def __init__(self, out: str | None, plot: str | None) -> None:
        from dotphase.storage.paths import FIGURES, check_writable

        self.dataset = None if out is None else check_writable("--out", out, (".nc",))
        self.figure = None if plot is None else check_writable("--plot", plot, FIGURES)

    @contextmanager
    def written_after(self, result: Any, draw: str) -> Iterator[None]:
        """Print results inside; then their dataset is written, and drawn by the figure of a name.

        So a disk that is full does not keep the results from being printed, nor a closed output
        the files from being written.
        """
        import xarray as xr

        from dotphase import plot
        from dotphase.storage.files import write_dataset

        try:
            yield
        finally:
            if self.dataset:
                dataset = result if isinstance(result, xr.Dataset) else result.dataset()
                write_dataset(dataset, self.dataset)
            if self.figure:
                getattr(plot, draw)(result, self.figure)

    def to_dict(self) -> dict[str, str | None]:
        """Their paths."""
        files = {"out": self.dataset, "plot": self.figure}
        return {name: str(path) if path else None for name, path in files.items()}

    def tell(self) -> None:
        """Print what was written, if anything was."""
        if self.dataset or self.figure:
            click.echo("wrote " + " and ".join(filter(None, self.to_dict().values())))


class Advance:
    """Called with the number of points newly finished.

    Where there is no terminal there is no bar, and descriptions become lines of a log.
    """

    def __init__(self, what: str, bar: Any = None, task: Any = None) -> None:
        self._what, self._bar, self._task, self._begun = what, bar, task, time.monotonic()

    def __call__(self, done: int = 1) -> None:
        self._update(advance=done)

    def describe(self, text: str) -> None:
        """Say what is being done."""
        if self._bar is None:
            click.echo(text, err=True)
        self._update(description=text)

    def status(self, text: str = "") -> None:
        """Say more beside the bar, where there is one; nothing takes it away again."""
        self._update(description=f"{self._what}: {text}" if text else self._what)

    def _update(self, **change: Any) -> None:
        if self._bar is not None:
            late = time.monotonic() - self._begun > QUIET
            self._bar.update(self._task, refresh=late, **change)


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Advance]:
    """A bar on stderr once the work has taken two seconds; nothing unless stderr is a terminal.

    While something is compiled it says so.
    """
    if not sys.stderr.isatty():
        yield Advance(what)
        return
    from rich import progress
    from rich.console import Console

    columns: list[Any] = [progress.SpinnerColumn(), progress.TextColumn("{task.description}")]
    if total is not None:
        columns += [progress.BarColumn(), progress.MofNCompleteColumn()]
        columns.append(progress.TimeRemainingColumn())
    columns.append(progress.TimeElapsedColumn())
    bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    advance = Advance(what, bar, bar.add_task(what, total=total))
    timer = threading.Timer(QUIET, bar.start)
    timer.daemon = True
    timer.start()
    try:
        with compiling.told(advance.status):
            yield advance
    finally:
        timer.cancel()
        bar.stop()
