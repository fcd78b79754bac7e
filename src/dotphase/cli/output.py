"""Output of the commands: JSON on stdout, progress on stderr."""

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
from dotphase.runtime.progress import ProgressEvent

#: Key of the stream for JSON in the context of a command.
STDOUT = "dotphase.stdout"
#: Stage of the events inside a unit of work: optimizer steps of one batch of runs.
INNER_STAGE = "steps"
#: Seconds of work before a progress bar appears.
BAR_DELAY = 2.0


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are not finite become null."""
    context = click.get_current_context(silent=True)
    stdout = context.meta.get(STDOUT) if context else None
    click.echo(json.dumps(to_json_types(value), allow_nan=False), file=stdout)


def echo(result: object) -> None:
    """Print a result; warnings are red on a terminal."""
    from dotphase.config.formatting import WARNING_PREFIXES

    for line in str(result).split("\n"):
        click.secho(line, fg="red" if line.lstrip().startswith(WARNING_PREFIXES) else None)


class Files:
    """Dataset and figure that a command writes, checked before any work."""

    def __init__(self, out: str | None, plot: str | None) -> None:
        from dotphase.storage.paths import FIGURES, check_writable

        self.dataset = None if out is None else check_writable("--out", out, (".nc",))
        self.figure = None if plot is None else check_writable("--plot", plot, FIGURES)

    @contextmanager
    def written_after(self, result: Any, figure: str) -> Iterator[None]:
        """Write the dataset and the named figure of a result after the block that prints it.

        A full disk then does not keep the result from being printed, and a closed output does not
        keep the files from being written.
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
                getattr(plot, figure)(result, self.figure)

    def to_dict(self) -> dict[str, str | None]:
        """Return the paths."""
        files = {"out": self.dataset, "plot": self.figure}
        return {name: str(path) if path else None for name, path in files.items()}

    def echo_paths(self) -> None:
        """Print the paths of written files, if any."""
        if self.dataset or self.figure:
            click.echo("wrote " + " and ".join(filter(None, self.to_dict().values())))


class ProgressBar:
    """A `ProgressCallback` that moves a bar of `rich`, if there is a terminal."""

    def __init__(self, title: str, progress: Any = None, task: Any = None) -> None:
        self.title, self._progress, self._task = title, progress, task
        self._start_time = time.monotonic()

    def __call__(self, event: ProgressEvent) -> None:
        """Move the bar; show steps inside a unit of work as text."""
        if event.stage == INNER_STAGE:
            self.status(f"step {event.done} of at most {event.total}")
        else:
            self._update(completed=event.done, total=event.total)

    def status(self, text: str = "") -> None:
        """Show `text` after the title."""
        self._update(description=f"{self.title}: {text}" if text else self.title)

    def count(self, event: ProgressEvent) -> None:
        """Show the number of steps of a computation whose total is not known."""
        self.status(f"{event.done} evaluations")

    def _update(self, **changes: Any) -> None:
        if self._progress is not None:
            visible = time.monotonic() - self._start_time > BAR_DELAY
            self._progress.update(self._task, refresh=visible, **changes)


@contextmanager
def progress_bar(title: str, total: int | None = None) -> Iterator[ProgressBar]:
    """Show a bar on stderr after two seconds of work, unless stderr is no terminal.

    The bar also shows when JAX compiles.
    """
    if not sys.stderr.isatty():
        yield ProgressBar(title)
        return
    from rich import progress
    from rich.console import Console

    columns: list[Any] = [progress.SpinnerColumn(), progress.TextColumn("{task.description}")]
    if total is not None:
        columns += [progress.BarColumn(), progress.MofNCompleteColumn()]
        columns.append(progress.TimeRemainingColumn())
    columns.append(progress.TimeElapsedColumn())
    display = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    bar = ProgressBar(title, display, display.add_task(title, total=total))
    timer = threading.Timer(BAR_DELAY, display.start)
    timer.daemon = True
    timer.start()
    try:
        with compiling.compilation_listener(bar.status):
            yield bar
    finally:
        timer.cancel()
        display.stop()
