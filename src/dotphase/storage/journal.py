"""Journals: results of independent points, each on disk before the next one is started.

A journal is a folder with an SQLite database in write-ahead mode. Each point is one row, written
in its own transaction, which has reached the disk when the call returns. A process that is killed
at any moment leaves all finished rows readable. Points that were never started have no row. The
database contains the configuration of the run. Another configuration is refused, unless it has all
finished points: they get their new indices. A locked file in the folder shows that a process is
writing.

Every row contains a checksum. A row that has changed on disk is ignored, and its point is computed
again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from dotphase.errors import InvalidInput
from dotphase.storage.paths import as_path, check_folder
from dotphase.storage.run_config import config_diff, to_json

#: Names of the files of a journal.
DATABASE, LOCK = "study.sqlite", "study.lock"
#: SQLite's application id of journals ("dotp"), and the version of their layout.
APPLICATION, LAYOUT = 0x646F7470, 3

#: Rows of the table "about": the configuration and the provenance.
CONFIG_KEYS = ("asked", "provenance")

_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE runs (started REAL NOT NULL, software TEXT NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE points (place INTEGER PRIMARY KEY, "
    "state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')), "
    "result TEXT, reason TEXT, seconds REAL, finished REAL, mark TEXT NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {LAYOUT}",
)


#: Function from a stored configuration to the new index of each of its points, negative for those
#: that the requested configuration does not have; None if the two have nothing in common.
Renumber = Callable[[dict[str, Any]], Sequence[int] | None]

#: Types of the columns of each table, without the checksum.
_TYPES: dict[str, tuple[Any, ...]] = {
    "about": (str, str),
    "runs": (float, str),
    "points": (int, str, str | None, str | None, float | None, float | None),
}
_INSERT_POINT = "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class PointResult:
    """Values of a computed point, or the reason of its failure."""

    index: int  #: number of the point
    values: dict[str, Any] | None  #: results by name; None if the point failed
    reason: str | None  #: error message; None if the point succeeded
    seconds: float  #: computing time


class Journal:
    """Journal open for writing, with a locked folder; create one with `Journal.open`.

    Attributes
    ----------
    folder : folder of the journal
    done : indices of the points that were finished before it was opened
    damaged : number of rows that had changed on disk and were deleted
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
        cls,
        folder: str | Path,
        config: Mapping[str, Any],
        provenance: Mapping[str, Any],
        renumber: Renumber = lambda stored: None,
    ) -> Journal:
        """Create a journal in a new or empty folder, or resume one with the same configuration.

        The provenance has the version as ``software``; that of the first run is stored.
        """
        folder, config = check_folder("out", folder), to_json(config)
        with storage_errors(folder, ""):
            _check_folder(folder, config, renumber)
            folder.mkdir(exist_ok=True)
            with ExitStack() as stack:
                lock = stack.enter_context(_lock(folder))
                database = sqlite3.connect(folder / DATABASE, timeout=60)
                stack.callback(database.close)
                done, damaged = _start_run(database, folder, config, provenance, renumber)
                stack.pop_all()
        return cls(folder, lock, database, done, damaged)

    def record(self, finished: Iterable[PointResult] = (), started: Iterable[int] = ()) -> None:
        """Write finished and started points; they are on disk when this returns."""
        now = time.time()
        rows = [_encode_point(point, now) for point in finished]
        rows += [_with_checksum(index, "running", None, None, None, None) for index in started]
        with storage_errors(self.folder), self._database:
            self._database.executemany(_INSERT_POINT, rows)

    def close(self) -> None:
        """Delete the rows of running points and release the folder."""
        try:
            with self._database:
                self._database.execute("DELETE FROM points WHERE state = 'running'")
            # A database in one file can be copied, and read from a read-only folder.
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            pass  # the disk may be full; running points of an unlocked journal count as pending
        finally:
            with self._lock:
                self._database.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True)
class JournalContents:
    """Contents of a journal."""

    #: configuration, and description of the first run
    config: dict[str, Any]
    provenance: dict[str, Any]
    software: tuple[str, ...]  #: versions of later runs that differ from the first
    points: tuple[PointResult, ...]  #: finished and failed points, in the order of their indices
    running: tuple[int, ...]  #: indices of the points being computed
    damaged: int  #: number of rows that have changed on disk; they are excluded
    active: bool  #: True if a process is writing
    started: float  #: time at which the last run started
    times: tuple[float, ...]  #: times at which the points were recorded


def read_journal(folder: str | Path, *, values: bool = True) -> JournalContents:
    """Read a journal, also while another process is writing; faster without `values`."""
    folder = as_path("study", folder)
    active = _is_locked(folder)
    with _open_to_read(folder) as database:
        config, provenance = _read_config(database)
        runs, _ = _read_rows(database, "runs")
        rows, damaged = _read_rows(database, "points", "ORDER BY place")
        finished = [row for row in rows if row[1] != "running"]
        versions = dict.fromkeys(software for _, software in runs)
        versions.pop(provenance.get("software"), None)
        return JournalContents(
            config=config,
            provenance=provenance,
            software=tuple(versions),
            points=tuple(_decode_point(row, values) for row in finished),
            running=tuple(row[0] for row in rows if row[1] == "running") if active else (),
            damaged=len(damaged),
            active=active,
            started=max((started for started, _ in runs), default=0.0),
            times=tuple(row[-1] for row in finished if row[-1] is not None),
        )


@contextmanager
def storage_errors(folder: Path, note: str = "; finished points are kept") -> Iterator[None]:
    """Turn errors of the disk and the database into `InvalidInput` with one line."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"cannot be used ({reason}){note}"
        raise InvalidInput("out", str(folder), rule) from error


def _encode_point(point: PointResult, now: float) -> tuple[Any, ...]:
    result = None if point.values is None else json.dumps(point.values)
    state = "failed" if point.values is None else "done"
    return _with_checksum(point.index, state, result, point.reason, float(point.seconds), now)


def _decode_point(row: tuple[Any, ...], with_values: bool) -> PointResult:
    index, _, result, reason, seconds, _ = row
    values = None if result is None else _parse(result) if with_values else {}
    return PointResult(index, values, reason, seconds)


def _parse(text: str) -> Any:
    """Parse JSON with a checksum, which only another program can have written wrongly."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("study", DATABASE, _damage_rule("not JSON")) from None


def _with_checksum(*values: Any) -> tuple[Any, ...]:
    """Append the checksum of a row."""
    return *values, hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()


def _read_rows(
    database: sqlite3.Connection, table: str, order: str = ""
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Return the intact rows of a table without checksums, and the ids of the damaged rows."""
    # Read bytes, so that damaged UTF-8 raises no error.
    database.text_factory = bytes
    try:
        rows = database.execute(f"SELECT rowid, * FROM {table} {order}").fetchall()
    finally:
        database.text_factory = str
    intact, damaged = [], []
    for row_id, *stored in rows:
        row = tuple(
            value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for value in stored
        )
        types = zip(row, _TYPES[table], strict=False)
        if _with_checksum(*row[:-1]) == row and all(isinstance(*pair) for pair in types):
            intact.append(row[:-1])
        else:
            damaged.append(row_id)
    return intact, damaged


def _check_folder(folder: Path, config: dict[str, Any], renumber: Renumber) -> None:
    """Refuse a folder with other contents, before anything is written."""
    if not folder.exists():
        return
    names = sorted(entry.name for entry in folder.iterdir())
    size = (folder / DATABASE).stat().st_size if DATABASE in names else 0
    # A run that is killed while it starts leaves a lock and perhaps an empty database.
    if set(names) <= {LOCK, DATABASE} and size == 0:
        return
    if DATABASE not in names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise InvalidInput("out", str(folder), f"contains other files ({shown}): use a new folder")
    with _open_to_read(folder) as database:
        if _has_tables(database):
            _renumbered_rows(database, folder, config, renumber)


def _renumbered_rows(
    database: sqlite3.Connection, folder: Path, config: dict[str, Any], renumber: Renumber
) -> list[tuple[Any, ...]] | None:
    """Return the rows of points with new indices; None if the configuration is the stored one.

    Another configuration that does not have all finished points is refused.
    """
    stored = _read_config(database)[0]
    difference = config_diff(stored, config)
    if difference is None:
        return None
    indices = renumber(stored)
    rows = [row for row in _read_rows(database, "points")[0] if row[1] != "running"]
    new_index = dict(enumerate(indices or ()))
    new = [(new_index.get(row[0], -1), *row[1:]) for row in rows]
    if indices is None or any(row[0] < 0 and row[1] == "done" for row in new):
        rule = f"contains results of another configuration ({difference}): use a new folder"
        raise InvalidInput("out", str(folder), rule)
    return [_with_checksum(*row) for row in new if row[0] >= 0]


def _lock(folder: Path) -> IO[bytes]:
    """Lock the journal for this process; the system releases the lock when the process ends."""
    file = (folder / LOCK).open("ab")
    for attempt in range(10):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if attempt < 9:
                time.sleep(0.05)  # a process that reads the status holds the lock briefly
    file.close()
    raise InvalidInput("out", str(folder), "is being run by another process")


def _is_locked(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _start_run(
    database: sqlite3.Connection,
    folder: Path,
    config: dict[str, Any],
    provenance: Mapping[str, Any],
    renumber: Renumber,
) -> tuple[frozenset[int], int]:
    """Create the tables if necessary, delete unfinished rows and add a row for this run.

    Returns the indices of the finished points and the number of damaged rows.
    """
    database.execute("PRAGMA journal_mode = WAL")
    # Every commit reaches the disk, so that a power cut loses no finished point.
    database.execute("PRAGMA synchronous = FULL")
    with database:
        database.execute("BEGIN IMMEDIATE")
        if not _has_tables(database):
            for statement in _SCHEMA:
                database.execute(statement)
            texts = zip(CONFIG_KEYS, (config, dict(provenance)), strict=True)
            about = [_with_checksum(name, json.dumps(value)) for name, value in texts]
            database.executemany("INSERT INTO about VALUES (?, ?, ?)", about)
        rows, damaged = _read_rows(database, "points")
        # Another process may have created the journal since the folder was checked.
        renumbered = _renumbered_rows(database, folder, config, renumber)
        if renumbered is not None:
            database.execute("DELETE FROM points")
            database.executemany(_INSERT_POINT, renumbered)
            row = _with_checksum(CONFIG_KEYS[0], json.dumps(config))
            database.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", row)
            rows = renumbered
        unfinished = damaged + [row[0] for row in rows if row[1] == "running"]
        database.executemany("DELETE FROM points WHERE rowid = ?", [(n,) for n in unfinished])
        run = _with_checksum(time.time(), provenance["software"])
        database.execute("INSERT INTO runs VALUES (?, ?, ?)", run)
    return frozenset(row[0] for row in rows if row[1] == "done"), len(damaged)


def _has_tables(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])


@contextmanager
def _open_to_read(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a folder; `InvalidInput` if it is damaged or of another program."""
    file = folder / DATABASE
    if not file.is_file():
        raise InvalidInput("study", str(folder), f"must be a folder with {DATABASE}")
    # SQLite decodes an address: a name such as "a%20b" must not lead to another folder.
    address = f"file:///{quote(os.fsencode(file.resolve())).lstrip('/')}?mode=ro"
    # SQLite cannot share a write-ahead log in a read-only folder. Without a log, the file does not
    # change.
    if not os.access(folder, os.W_OK) and not file.with_name(file.name + "-wal").exists():
        address += "&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            has_tables = _has_tables(database)
            application = database.execute("PRAGMA application_id").fetchone()[0]
            layout = database.execute("PRAGMA user_version").fetchone()[0]
            if has_tables and application != APPLICATION:
                rule = f"contains a {DATABASE} of another program"
                raise InvalidInput("study", str(folder), rule)
            tables = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
            # Another program can replace a table by a view without end.
            if has_tables and layout == LAYOUT and {sql for (sql,) in tables} != set(_SCHEMA[:3]):
                raise InvalidInput("study", str(folder), _damage_rule("its tables have changed"))
            if has_tables and layout != LAYOUT:
                rule = "was written by another version of dotphase"
                raise InvalidInput("study", str(folder), rule)
            (state,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            if state != "ok":
                raise InvalidInput("study", str(folder), _damage_rule(state))
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InvalidInput("study", str(folder), _damage_rule(str(error))) from None


def _damage_rule(error: str) -> str:
    reason = error.splitlines()[0] if error else "unreadable"
    return f"cannot be read: {DATABASE} is damaged ({reason}); use a new folder"


def _read_config(database: sqlite3.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configuration and the provenance of a journal."""
    if not _has_tables(database):
        raise InvalidInput("study", DATABASE, "is empty: the study was not started")
    rows, damaged = _read_rows(database, "about")
    if damaged or {name for name, _ in rows} != set(CONFIG_KEYS):
        raise InvalidInput("study", DATABASE, _damage_rule("its configuration has changed"))
    config, provenance = (_parse(dict(rows)[name]) for name in CONFIG_KEYS)
    keys = ("software", "started")
    if not isinstance(config, dict) or not all(isinstance(provenance.get(k), str) for k in keys):
        raise InvalidInput("study", DATABASE, _damage_rule("its configuration has changed"))
    return config, provenance
