"""The record of a study on disk, and where the study stands."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dotphase.storage.journal import Journal, JournalContents, read_journal
from dotphase.study.spec import Study

#: The dataset, beside the journal.
DATASET = "study.nc"
#: Points that the present rate is judged by.
RECENT = 100
#: What is asked besides the parameters: the points are numbered in the order of the sweep.
ORDER = "order of sweep"


@dataclass(frozen=True)
class Status:
    """Where a study stands.

    Attributes
    ----------
    folder, task : where it is kept and what it computes
    state : "finished", "running" or "stopped"
    total, done, failed, pending : numbers of points; those being computed are pending
    running : swept values of the points being computed
    damaged : rows that have changed on the disk; the next run computes these points again
    failures : swept values and reason of the points that failed
    rate : points finished per second of late; None if not known
    seconds_left : at this rate; None if not known
    seconds_per_point : mean time of the finished points; None if there are none
    started : when the study was begun
    dataset : path of the dataset, once it is written
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
        """The status as plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.task} study, {self.state}: {self.done} of {self.total} points done"]
        if self.failed:
            lines[0] += f", {self.failed} failed"
        if self.running:
            lines[0] += f", {len(self.running)} being computed"
        if self.damaged:
            lines.append(
                f"  {self.damaged} rows are damaged on the disk and will be computed again"
            )
        if self.rate and self.pending:
            left = f"{self.seconds_left:.0f} s left" if self.seconds_left is not None else ""
            lines.append(f"  {self.rate:.3g} points a second, {left}")
        lines += [f"  failed at {_place(row)}: {row['reason']}" for row in self.failures[:20]]
        if len(self.failures) > 20:
            lines.append(f"  and {len(self.failures) - 20} more")
        if self.dataset:
            lines.append(f"  {self.dataset}")
        return "\n".join(lines)


def _place(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in row.items() if name != "reason")


def open_journal(folder: str | Path, study: Study, about: dict[str, Any]) -> Journal:
    """The journal of a study, to write; refuses a folder that holds another one."""
    return Journal.open(folder, {**study.to_dict(), ORDER: list(study.sweep)}, about)


def read_record(folder: str | Path, *, values: bool = True) -> tuple[Study, JournalContents]:
    """A study and everything that is finished in its folder, also while it is running."""
    found = read_journal(folder, values=values)
    spec = {name: value for name, value in found.asked.items() if name != ORDER}
    return Study.restore(spec), found


def read_status(folder: str | Path) -> Status:
    """Where the study in a folder stands.

    Parameters
    ----------
    folder : path
        Where `run_study` works, or has worked.

    Examples
    --------
    >>> study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})
    >>> found = dp.run_study(study, "kept", on="here")
    >>> dp.read_status("kept").done
    2
    """
    study, found = read_record(folder, values=False)
    times = [outcome.seconds for outcome in found.outcomes if outcome.values is not None]
    failures = [outcome for outcome in found.outcomes if outcome.values is None]
    pending = study.size - len(found.outcomes)
    recent = sorted((when for when in found.finished if when >= found.begun), reverse=True)
    now = time.time() if found.active else max(recent, default=found.begun)
    rate = rate_of(found.begun, recent[: RECENT + 1], now)
    dataset = Path(folder) / DATASET
    return Status(
        folder=str(folder),
        task=study.task,
        state="running" if found.active else "stopped" if pending else "finished",
        total=study.size,
        done=len(times),
        failed=len(failures),
        pending=pending,
        running=tuple(study.place(place) for place in found.running),
        damaged=found.damaged,
        failures=tuple(study.place(one.index) | {"reason": one.reason} for one in failures),
        rate=rate,
        seconds_left=pending / rate if rate else None,
        seconds_per_point=sum(times) / len(times) if times else None,
        started=found.about["started"],
        dataset=str(dataset) if dataset.exists() else None,
    )


def rate_of(begun: float, recent: list[float], now: float) -> float | None:
    """Points per second over the last `RECENT` of them, latest first; None if not known."""
    if not recent:
        return None
    whole = len(recent) > RECENT
    count, since = (RECENT, recent[RECENT]) if whole else (len(recent), begun)
    return count / (now - since) if now > since else None
