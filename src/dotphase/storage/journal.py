"""Answers point by point: every finished one is safe before the next is begun.

A journal is a folder with an SQLite database in write-ahead mode. A point is one row, written
in a transaction of its own that has reached the disk when the call returns; a process that is
killed at any moment leaves all finished rows readable. Points that nobody has worked on have no
row. The database says what was asked; another question is refused. A lock on a file beside it
says whether somebody is at work.

Every row carries a mark made of its contents: a row that has changed on the disk is not believed,
and its point is computed again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dotphase.errors import InvalidInput
from dotphase.storage.paths import as_path, check_folder
from dotphase.storage.run_config import config_diff, to_json

#: Files of a journal's folder.
DATABASE, LOCK = "study.sqlite", "study.lock"
#: Marks our databases ("dotp"), and the version of their layout.
APPLICATION, LAYOUT = 0x646F7470, 3

_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE runs (started REAL NOT NULL, software TEXT NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE points (place INTEGER PRIMARY KEY, "
    "state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')), "
    "result TEXT, reason TEXT, seconds REAL, finished REAL, mark TEXT NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {LAYOUT}",
)


@dataclass(frozen=True)
class PointResult:
    """What became of a point: its values, or the reason why there are none.

    Attributes
    ----------
    index : place of the point
    values, reason : one of them is None
    seconds : time it took
    """

    index: int
    values: dict[str, Any] | None
    reason: str | None
    seconds: float


class Journal:
    """An open journal: its folder is locked and its database can be written.

    Use `Journal.open`; then record what happens, and `close`.

    Attributes
    ----------
    folder : where it is kept
    done : places of the points that were done when it was opened
    damaged : number of rows that had changed on the disk and were dropped
    """

    def __init__(
        self,
        folder: Path,
        lock: IO[bytes],
        database: sqlite3.Connection,
        done: frozenset[int],
        damaged: int,
    ) -> None:
        self.folder, self._lock, self._database = folder, lock, database
        self.done, self.damaged = done, damaged

    @classmethod
    def open(
        cls, folder: str | Path, asked: Mapping[str, Any], about: Mapping[str, Any]
    ) -> Journal:
        """Begin in a new or empty folder, or go on where the same was asked.

        Parameters
        ----------
        asked : mapping
            What is computed; anything that JSON can hold.
        about : mapping
            Provenance, kept from the time of the beginning, with the version as ``software``.
        """
        folder, asked = check_folder("out", folder), to_json(asked)
        with storage_errors(folder, ""):
            _check_folder(folder, asked)
            folder.mkdir(exist_ok=True)
            with ExitStack() as stack:
                lock = stack.enter_context(_lock(folder))
                database = sqlite3.connect(folder / DATABASE, timeout=60)
                stack.callback(database.close)
                done, damaged = _begin(database, asked, about)
                stack.pop_all()
        return cls(folder, lock, database, done, damaged)

    def record(self, finished: Iterable[PointResult] = (), started: Iterable[int] = ()) -> None:
        """Write down what became of points and which are next; on disk when this returns."""
        now = time.time()
        rows = [_row(outcome, now) for outcome in finished]
        rows += [_marked(place, "running", None, None, None, None) for place in started]
        with storage_errors(self.folder), self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?)", rows
            )

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
            with self._lock:
                self._database.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True)
class JournalContents:
    """What a journal holds.

    Attributes
    ----------
    asked, about : the question, and the provenance of the first run
    software : versions that later runs were made with, if they differ from the first
    outcomes : every finished or failed point, by its place
    running : places of the points being computed
    damaged : number of rows that have changed on the disk; they are left out
    active : whether somebody is at work
    begun : when the last run began
    finished : when each of the outcomes was recorded
    """

    asked: dict[str, Any]
    about: dict[str, Any]
    software: tuple[str, ...]
    outcomes: tuple[PointResult, ...]
    running: tuple[int, ...]
    damaged: int
    active: bool
    begun: float
    finished: tuple[float, ...]


def read_journal(folder: str | Path, *, values: bool = True) -> JournalContents:
    """Everything in a journal's folder, also while somebody is at work.

    Parameters
    ----------
    values : bool
        Whether to read the values of the points that are done; they are empty otherwise.
    """
    folder = as_path("study", folder)
    active = _is_locked(folder)
    with _reading(folder) as database:
        about = _about(database)
        runs, _ = _sound(database, "runs")
        points, damaged = _sound(database, "points", "ORDER BY place")
        finished = [row for row in points if row[1] != "running"]
        return JournalContents(
            asked=about["asked"],
            about=about["provenance"],
            software=tuple(
                dict.fromkeys(one for _, one in runs if one != about["provenance"].get("software"))
            ),
            outcomes=tuple(_outcome(row, values) for row in finished),
            running=tuple(row[0] for row in points if row[1] == "running") if active else (),
            damaged=len(damaged),
            active=active,
            begun=max((started for started, _ in runs), default=0.0),
            finished=tuple(row[-1] for row in finished),
        )


@contextmanager
def storage_errors(folder: Path, kept: str = "; what was finished is kept") -> Iterator[None]:
    """Turn what the disk and the database complain of into one line."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"cannot be used ({reason}){kept}"
        raise InvalidInput("out", str(folder), rule) from error


def _row(outcome: PointResult, now: float) -> tuple[Any, ...]:
    result = None if outcome.values is None else json.dumps(outcome.values)
    state = "failed" if outcome.values is None else "done"
    return _marked(outcome.index, state, result, outcome.reason, float(outcome.seconds), now)


def _outcome(row: tuple[Any, ...], values: bool) -> PointResult:
    place, _, result, reason, seconds, _ = row
    found = None if result is None else json.loads(result) if values else {}
    return PointResult(place, found, reason, seconds)


def _marked(*values: Any) -> tuple[Any, ...]:
    """A row with the mark that tells whether it has changed."""
    return *values, hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()


def _sound(
    database: sqlite3.Connection, table: str, order: str = ""
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """The rows of a table that are as they were written, and the numbers of the others."""
    # As bytes: text that is no longer UTF-8 must not end the reading.
    database.text_factory = bytes
    try:
        rows = database.execute(f"SELECT rowid, * FROM {table} {order}").fetchall()
    finally:
        database.text_factory = str
    sound, damaged = [], []
    for number, *stored in rows:
        row = tuple(
            value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for value in stored
        )
        if _marked(*row[:-1]) == row:
            sound.append(row[:-1])
        else:
            damaged.append(number)
    return sound, damaged


def _check_folder(folder: Path, asked: dict[str, Any]) -> None:
    """Refuse a folder that is not ours, before anything is written."""
    if not folder.exists():
        return
    names = sorted(entry.name for entry in folder.iterdir())
    size = (folder / DATABASE).stat().st_size if DATABASE in names else 0
    # A run that was killed at the very start leaves a lock and perhaps an empty database.
    if set(names) <= {LOCK, DATABASE} and size == 0:
        return
    if DATABASE not in names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise InvalidInput("out", str(folder), f"holds something else ({shown}): use a new folder")
    with _reading(folder) as database:
        if not _is_begun(database):
            return
        other = config_diff(_about(database)["asked"], asked)
    if other is not None:
        rule = f"contains results of another configuration ({other}): use a new folder"
        raise InvalidInput("out", str(folder), rule)


def _lock(folder: Path) -> IO[bytes]:
    """Hold the journal for this process, until it ends however it ends."""
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
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _begin(
    database: sqlite3.Connection, asked: dict[str, Any], about: Mapping[str, Any]
) -> tuple[frozenset[int], int]:
    """The tables of a new journal, and a line for this run, in one transaction.

    Returns the places of the points that are done and the number of rows that were damaged.
    """
    database.execute("PRAGMA journal_mode = WAL")
    # Every commit reaches the disk, so that even a power cut loses no finished point.
    database.execute("PRAGMA synchronous = FULL")
    with database:
        database.execute("BEGIN IMMEDIATE")
        if not _is_begun(database):
            for statement in _SCHEMA:
                database.execute(statement)
            texts = {"asked": json.dumps(asked), "provenance": json.dumps(dict(about))}
            rows = [_marked(*row) for row in texts.items()]
            database.executemany("INSERT INTO about VALUES (?, ?, ?)", rows)
        points, damaged = _sound(database, "points")
        dropped = damaged + [row[0] for row in points if row[1] == "running"]
        database.executemany("DELETE FROM points WHERE rowid = ?", [(one,) for one in dropped])
        now = _marked(time.time(), about["software"])
        database.execute("INSERT INTO runs VALUES (?, ?, ?)", now)
    return frozenset(row[0] for row in points if row[1] == "done"), len(damaged)


def _is_begun(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])


@contextmanager
def _reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database of a folder, to read; refuses what is not one of ours."""
    file = folder / DATABASE
    if not file.is_file():
        raise InvalidInput("study", str(folder), f"must be a folder that holds {DATABASE}")
    place = f"file:{file.resolve().as_posix().replace('?', '%3f').replace('#', '%23')}?mode=ro"
    # In a folder that is read-only SQLite cannot share the write-ahead log; without one
    # the file does not change.
    if not os.access(folder, os.W_OK) and not file.with_name(file.name + "-wal").exists():
        place += "&immutable=1"
    try:
        with closing(sqlite3.connect(place, uri=True)) as database:
            begun = _is_begun(database)
            mark = database.execute("PRAGMA application_id").fetchone()[0]
            layout = database.execute("PRAGMA user_version").fetchone()[0]
            if begun and mark != APPLICATION:
                raise InvalidInput("study", str(folder), f"holds a {DATABASE} of another program")
            if begun and layout != LAYOUT:
                rule = "was written by another version of dotphase"
                raise InvalidInput("study", str(folder), rule)
            (state,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            if state != "ok":
                raise InvalidInput("study", str(folder), _damaged(state))
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InvalidInput("study", str(folder), _damaged(str(error))) from None


def _damaged(what: str) -> str:
    shown = what.splitlines()[0] if what else "unreadable"
    return f"cannot be read: {DATABASE} is damaged ({shown}); use a new folder"


def _about(database: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    if not _is_begun(database):
        raise InvalidInput("study", DATABASE, "holds nothing: the study was not begun")
    rows, damaged = _sound(database, "about")
    if damaged or {name for name, _ in rows} != {"asked", "provenance"}:
        raise InvalidInput("study", DATABASE, _damaged("what was asked has changed"))
    return {name: json.loads(value) for name, value in rows}
