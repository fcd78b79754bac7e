"""Journal and status of a study."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dotphase.errors import InvalidInput, describe_error
from dotphase.storage.journal import DATABASE, Journal, JournalContents, PointResult, read_journal
from dotphase.study.identity import new_indices
from dotphase.study.spec import Study
from dotphase.study.tasks import TASKS

#: Name of the dataset in the folder of the journal.
DATASET = "study.nc"
#: Number of latest points that determine the rate.
RECENT = 100
#: Number of failed points in the text of a status.
MAX_FAILURES = 20
#: Types in JSON of the results of a task, where they differ.
NUMBERS: dict[type, Any] = {float: int | float}
#: Key of the order of swept parameters, which determines the indices of the points.
ORDER = "order of sweep"


@dataclass(frozen=True)
class Status:
    """Progress of a study.

    Attributes
    ----------
    folder, task : folder and task of the study
    state : "finished", "running" or "stopped"
    total, done, failed, pending : numbers of points; those being computed are pending
    running : swept values of the points being computed
    damaged : rows that have changed on disk; the next run computes their points again
    failures : swept values and reasons of the failed points
    rate : finished points per second over the last points; None before the first
    seconds_left : estimated seconds until the end; None without a rate
    seconds_per_point : mean computing time of the finished points; None before the first
    started : time at which the study was first started
    dataset : path of the dataset; None before it is written
    """

    folder: str
    task: str
    state: str
    total: int
    done: int
    failed: int
    pending: int
    running: tuple[dict[str, Any], ...]
    damaged: int
    failures: tuple[dict[str, Any], ...]
    rate: float | None
    seconds_left: float | None
    seconds_per_point: float | None
    started: str
    dataset: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the status as values that JSON can represent."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.task} study, {self.state}: {self.done} of {self.total} points done"]
        if self.failed:
            lines[0] += f", {self.failed} failed"
        if self.running:
            lines[0] += f", {len(self.running)} being computed"
        if self.damaged:
            lines.append(
                f"  {self.damaged} rows are damaged on disk; the next run computes them again"
            )
        if self.rate and self.pending:
            lines.append(f"  {self.rate:.3g} points per second, {self.seconds_left:.0f} s left")
        for failure in self.failures[:MAX_FAILURES]:
            values = [f"{name} = {value}" for name, value in failure.items() if name != "reason"]
            lines.append(f"  failed at {', '.join(values)}: {failure['reason']}")
        if len(self.failures) > MAX_FAILURES:
            lines.append(f"  and {len(self.failures) - MAX_FAILURES} more")
        if self.dataset:
            lines.append(f"  {self.dataset}")
        return "\n".join(lines)


def open_journal(folder: str | Path, study: Study, provenance: dict[str, Any]) -> Journal:
    """Open the journal of a study for writing.

    A folder with another study is refused, unless all its finished points belong to this one.
    """

    def renumber(config: dict[str, Any]) -> Sequence[int] | None:
        indices = new_indices(_restore(config), study)
        return None if indices is None else indices.tolist()

    config = {**study.to_dict(), ORDER: list(study.sweep)}
    with ExitStack() as stack:
        journal = stack.enter_context(Journal.open(folder, config, provenance, renumber))
        read_contents(folder)
        stack.pop_all()
    return journal


def _restore(config: dict[str, Any]) -> Study:
    try:
        return Study.restore({name: value for name, value in config.items() if name != ORDER})
    except (AttributeError, KeyError, TypeError) as error:
        rule = f"has a specification of another program ({describe_error(error)})"
        raise InvalidInput("study", DATABASE, rule) from None


def _check_points(study: Study, points: tuple[PointResult, ...], values: bool) -> None:
    """Refuse points that this study cannot have; only another program can have written them."""
    results = TASKS[study.task].results
    for point in points:
        is_known = 0 <= point.index < study.size
        if values and point.values is not None:
            is_known &= isinstance(point.values, dict) and all(
                isinstance(point.values.get(name), NUMBERS.get(result.kind, result.kind))
                for name, result in results.items()
            )
        if not is_known:
            rule = (
                f"has a point {point.index} that a {study.task} study of this version cannot have"
            )
            raise InvalidInput("study", DATABASE, f"{rule}; use a new folder")


def read_contents(folder: str | Path, *, values: bool = True) -> tuple[Study, JournalContents]:
    """Return the study in a folder and the contents of its journal, also while it is running."""
    contents = read_journal(folder, values=values)
    study = _restore(contents.config)
    _check_points(study, contents.points, values)
    return study, contents


def read_status(folder: str | Path) -> Status:
    """Return the progress of a study.

    Parameters
    ----------
    folder : path
        Folder of the study, as in `run_study`.

    Examples
    --------
    >>> study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})
    >>> dataset = dp.run_study(study, "ridge", engine="serial")
    >>> dp.read_status("ridge").done
    2
    """
    study, contents = read_contents(folder, values=False)
    seconds = [point.seconds for point in contents.points if point.values is not None]
    failures = [point for point in contents.points if point.values is None]
    pending = study.size - len(contents.points)
    times = sorted((t for t in contents.times if t >= contents.started), reverse=True)
    now = time.time() if contents.active else max(times, default=contents.started)
    rate = rate_of(contents.started, times[: RECENT + 1], now)
    dataset = Path(folder) / DATASET
    return Status(
        folder=str(folder),
        task=study.task,
        state="running" if contents.active else "stopped" if pending else "finished",
        total=study.size,
        done=len(seconds),
        failed=len(failures),
        pending=pending,
        running=tuple(study.labels(index) for index in contents.running),
        damaged=contents.damaged,
        failures=tuple(study.labels(point.index) | {"reason": point.reason} for point in failures),
        rate=rate,
        seconds_left=pending / rate if rate else None,
        seconds_per_point=sum(seconds) / len(seconds) if seconds else None,
        started=contents.provenance["started"],
        dataset=str(dataset) if dataset.exists() else None,
    )


def rate_of(started: float, times: list[float], now: float) -> float | None:
    """Return the points per second over the last `RECENT` times, latest first; None without any."""
    if not times:
        return None
    count, since = (RECENT, times[RECENT]) if len(times) > RECENT else (len(times), started)
    return count / (now - since) if now > since else None
