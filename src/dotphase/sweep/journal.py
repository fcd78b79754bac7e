"""The record of a study on disk: every finished point is safe before the next one starts.

A study's folder holds an SQLite database in write-ahead mode. A point is one row, written
in a transaction of its own that has reached the disk when the call returns; a process that
is killed at any moment leaves all finished rows readable. Points that nobody has worked on
have no row. A lock on a file beside it says whether the study is being run.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from dotphase.errors import InvalidInput
from dotphase.sweep.spec import Study
from dotphase.sweep.tasks import PointResult

#: Files of a study's folder.
DATABASE, LOCK, DATASET = "study.sqlite", "study.lock", "study.nc"
#: Marks our databases ("dotp"), and the version of their layout.
APPLICATION, LAYOUT = 0x646F7470, 1
#: Points that the present rate is judged by.
RECENT = 100

_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (started REAL NOT NULL, software TEXT NOT NULL);
CREATE TABLE points (
    place INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),
    result TEXT,
    reason TEXT,
    seconds REAL,
    finished REAL
);
CREATE INDEX by_state ON points (state, finished);
"""


@dataclass(frozen=True)
class Status:
    """Where a study stands.

    Attributes
    ----------
    folder, task : where it is kept and what it computes
    state : "finished", "running" or "stopped"
    total, done, failed, pending : numbers of points; those being computed are pending
    running : swept values of the points being computed
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


class Journal:
    """An open study: its folder is locked and its database can be written.

    Use `Journal.open`; then record what happens, and `close`.
    """

    def __init__(self, folder: Path, lock: IO[bytes], database: sqlite3.Connection) -> None:
        self.folder, self._lock, self._database = folder, lock, database

    @classmethod
    def open(cls, folder: str | Path, study: Study, about: dict[str, Any]) -> Journal:
        """Begin a study in a new or empty folder, or go on with the same one.

        Parameters
        ----------
        about : dict
            Provenance, kept from the time the study was begun.
        """
        folder = Path(folder)
        with storage_errors(folder):
            _check_folder(folder, study)
            folder.mkdir(exist_ok=True)
            lock = _lock(folder)
            try:
                database = _connect(folder)
                try:
                    _begin(database, study, about)
                except BaseException:
                    database.close()
                    raise
            except BaseException:
                lock.close()
                raise
        return cls(folder, lock, database)

    def record(self, finished: Iterable[PointResult] = (), started: Iterable[int] = ()) -> None:
        """Write down what became of points and which are next; on disk when this returns."""
        now = time.time()
        with storage_errors(self.folder), self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?)",
                [_row(outcome, now) for outcome in finished],
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO points (place, state) VALUES (?, 'running')",
                [(place,) for place in started],
            )

    def done(self) -> set[int]:
        """Places of the points that are done."""
        rows = self._database.execute("SELECT place FROM points WHERE state = 'done'")
        return {place for (place,) in rows}

    def close(self) -> None:
        """Points that were being computed are no longer; the folder is free for others."""
        try:
            with self._database:
                self._database.execute("DELETE FROM points WHERE state = 'running'")
            # One plain file, that can be copied and read where nothing can be written.
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            pass  # the disk may be full: a running point without a lock counts as pending
        finally:
            try:
                self._database.close()
            finally:
                self._lock.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True)
class Record:
    """What a journal holds.

    Attributes
    ----------
    study : the specification
    about : provenance of the first run
    software : versions that later runs were made with, if they differ from the first
    outcomes : every finished or failed point
    """

    study: Study
    about: dict[str, Any]
    software: tuple[str, ...]
    outcomes: tuple[PointResult, ...]


def read_record(folder: str | Path) -> Record:
    """Everything that is finished in a study's folder, also while it is running."""
    with _reading(Path(folder)) as database:
        about = _about(database)
        software = [row for (row,) in database.execute("SELECT DISTINCT software FROM runs")]
        rows = database.execute(
            "SELECT place, result, reason, seconds FROM points WHERE state != 'running' "
            "ORDER BY place"
        )
        outcomes = tuple(
            PointResult(place, None if result is None else json.loads(result), reason, seconds)
            for place, result, reason, seconds in rows
        )
    provenance = json.loads(about["provenance"])
    others = tuple(name for name in software if name != provenance.get("software"))
    return Record(Study.restore(json.loads(about["study"])), provenance, others, outcomes)


def read_status(folder: str | Path) -> Status:
    """Where the study in a folder stands.

    Parameters
    ----------
    folder : path
        Where `run_study` works, or has worked.
    """
    folder = Path(folder)
    active = _is_locked(folder)
    with _reading(folder) as database:
        about = _about(database)
        study = Study.restore(json.loads(about["study"]))
        counts = dict(database.execute("SELECT state, COUNT(*) FROM points GROUP BY state"))
        begun = database.execute("SELECT MAX(started) FROM runs").fetchone()[0]
        recent = [
            when
            for (when,) in database.execute(
                "SELECT finished FROM points WHERE state != 'running' AND finished >= ? "
                "ORDER BY finished DESC LIMIT ?",
                (begun, RECENT + 1),
            )
        ]
        mean = database.execute("SELECT AVG(seconds) FROM points WHERE state = 'done'")
        running = [
            study.place(place)
            for (place,) in database.execute(
                "SELECT place FROM points WHERE state = 'running' ORDER BY place"
            )
        ]
        failures = [
            study.place(place) | {"reason": reason}
            for place, reason in database.execute(
                "SELECT place, reason FROM points WHERE state = 'failed' ORDER BY place"
            )
        ]
        done, failed = counts.get("done", 0), counts.get("failed", 0)
        pending = study.size - done - failed
        rate = rate_of(begun, recent, time.time() if active else max(recent, default=begun))
        dataset = folder / DATASET
        return Status(
            folder=str(folder),
            task=study.task,
            state="running" if active else "stopped" if pending else "finished",
            total=study.size,
            done=done,
            failed=failed,
            pending=pending,
            running=tuple(running) if active else (),
            failures=tuple(failures),
            rate=rate,
            seconds_left=pending / rate if rate else None,
            seconds_per_point=mean.fetchone()[0],
            started=json.loads(about["provenance"])["started"],
            dataset=str(dataset) if dataset.exists() else None,
        )


def rate_of(begun: float, recent: list[float], now: float) -> float | None:
    """Points per second over the last `RECENT` of them, latest first; None if not known."""
    if not recent:
        return None
    whole = len(recent) > RECENT
    count, since = (RECENT, recent[RECENT]) if whole else (len(recent), begun)
    return count / (now - since) if now > since else None


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn what the disk and the database complain of into one line."""
    try:
        yield
    except sqlite3.Error as error:
        rule = f"cannot be used ({error}); what was finished is kept"
        raise InvalidInput("out", str(folder), rule) from error
    except OSError as error:
        rule = f"cannot be used ({error.strerror or error}); what was finished is kept"
        raise InvalidInput("out", str(folder), rule) from error


def _row(outcome: PointResult, now: float) -> tuple[Any, ...]:
    result = None if outcome.values is None else json.dumps(outcome.values)
    state = "failed" if outcome.values is None else "done"
    return outcome.index, state, result, outcome.reason, outcome.seconds, now


def _check_folder(folder: Path, study: Study) -> None:
    """Refuse a folder that is not ours, before anything is written."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("out", str(folder), "must be a folder, or a new name for one")
    if not folder.parent.is_dir():
        raise InvalidInput("out", str(folder), "must be in a folder that exists")
    if not folder.exists():
        return
    names = sorted(entry.name for entry in folder.iterdir())
    # A run that was killed at the very start leaves a lock and perhaps an empty database.
    empty = set(names) <= {LOCK, DATABASE} and _size(folder / DATABASE) == 0
    if empty:
        return
    if DATABASE not in names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise InvalidInput("out", str(folder), f"holds something else ({shown}): use a new folder")
    with _reading(folder) as database:
        if not _is_begun(database):
            return
        stored = Study.restore(json.loads(_about(database)["study"]))
    changes = stored.difference(study)
    if changes:
        raise InvalidInput(
            "out", str(folder), f"holds another study ({'; '.join(changes)}): use a new folder"
        )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _lock(folder: Path) -> IO[bytes]:
    """Hold the study for this process, until it ends however it ends."""
    file = (folder / LOCK).open("ab")
    for attempt in range(10):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if attempt < 9:
                time.sleep(0.05)  # someone who asks for the status holds it for a moment
    file.close()
    raise InvalidInput("out", str(folder), "is being run by another process")


def _is_locked(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _connect(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(folder / DATABASE, timeout=60)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        # Every commit reaches the disk, so that even a power cut loses no finished point.
        database.execute("PRAGMA synchronous = FULL")
    except BaseException:
        database.close()
        raise
    return database


def _begin(database: sqlite3.Connection, study: Study, about: dict[str, Any]) -> None:
    """The tables of a new study, in one transaction; and a line for this run."""
    if not _is_begun(database):
        rows = {"study": json.dumps(study.to_dict()), "provenance": json.dumps(about)}
        values = ", ".join(f"('{name}', {_quoted(value)})" for name, value in rows.items())
        database.executescript(
            f"BEGIN; {_SCHEMA} INSERT INTO about VALUES {values}; "
            f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {LAYOUT}; COMMIT;"
        )
    with database:
        database.execute("DELETE FROM points WHERE state = 'running'")
        database.execute("INSERT INTO runs VALUES (?, ?)", (time.time(), about["software"]))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_begun(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])


@contextmanager
def _reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database of a folder, to read; refuses what is not one of ours."""
    file = folder / DATABASE
    if not file.is_file():
        raise InvalidInput("study", str(folder), f"must be a folder that holds {DATABASE}")
    try:
        database = _open_to_read(file)
    except sqlite3.Error as error:
        raise InvalidInput("study", str(folder), f"cannot be read ({error})") from None
    try:
        mark = database.execute("PRAGMA application_id").fetchone()[0]
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        if _is_begun(database) and mark != APPLICATION:
            raise InvalidInput("study", str(folder), f"holds a {DATABASE} of another program")
        if layout > LAYOUT:
            raise InvalidInput("study", str(folder), "was written by a newer version of dotphase")
        yield database
    except sqlite3.DatabaseError as error:
        raise InvalidInput("study", str(folder), f"cannot be read ({error})") from None
    finally:
        database.close()


def _open_to_read(file: Path) -> sqlite3.Connection:
    """A connection that writes nothing, also where nothing can be written."""
    place = f"file:{file.resolve().as_posix().replace('?', '%3f').replace('#', '%23')}"
    # In a folder that is read-only SQLite cannot share the write-ahead log; without one
    # the file does not change.
    alone = not os.access(file.parent, os.W_OK) and not file.with_name(file.name + "-wal").exists()
    database = sqlite3.connect(f"{place}?mode=ro{'&immutable=1' if alone else ''}", uri=True)
    try:
        database.execute("PRAGMA schema_version")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _about(database: sqlite3.Connection) -> dict[str, str]:
    if not _is_begun(database):
        raise InvalidInput("study", DATABASE, "holds nothing: the study was not begun")
    return dict(database.execute("SELECT name, value FROM about"))
