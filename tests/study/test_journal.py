"""Status of a study, and the studies that a folder accepts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

import dotphase as dp
import fake_task  # noqa: F401
from dotphase.storage.journal import DATABASE, PointResult, _with_checksum
from dotphase.study.journal import RECENT, open_journal, rate_of, read_contents, read_status

PROVENANCE = {"software": "dotphase 1.0", "started": "now"}
STUDY = dp.Study("fake", sweep={"x": [1.0, 2.0, 3.0], "kind": ["good"]}, seeds=2)
VALUES = {"value": 1.0, "count": 2, "converged": True, "label": "x"}


def test_status_counts_and_names_the_points(tmp_path):
    with open_journal(tmp_path / "s", STUDY, PROVENANCE) as journal:
        done = [PointResult(k, VALUES, None, 0.5) for k in (0, 4)]
        journal.record([*done, PointResult(1, None, "why", 0.1)], [5])
        status = read_status(tmp_path / "s")
        assert (status.state, status.done, status.failed, status.pending) == ("running", 2, 1, 3)
        assert status.running == ({"x": 3.0, "kind": "good", "seed": 1},)
        assert status.failures == ({"x": 1.0, "kind": "good", "seed": 1, "reason": "why"},)
        assert status.seconds_per_point == 0.5 and status.rate > 0
    status = read_status(tmp_path / "s")
    assert status.state == "stopped" and status.running == ()
    assert read_contents(tmp_path / "s")[0] == STUDY


def test_another_study_is_refused_with_the_difference(tmp_path):
    with open_journal(tmp_path, STUDY, PROVENANCE) as journal:
        journal.record([PointResult(5, VALUES, None, 0.5)])
    other = dp.Study("fake", sweep={"x": [1.0, 2.0], "kind": ["good"]}, seeds=2)
    with pytest.raises(dp.InvalidInput, match=r"sweep.x: \[1.0, 2.0, 3.0\] stored, \[1.0, 2.0\]"):
        open_journal(tmp_path, other, PROVENANCE)


def write_row(folder, table, *values):
    """Write a row with the right checksum, as a program that knows the format can."""
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        row = _with_checksum(*values)
        marks = ", ".join("?" * len(row))
        database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)


@pytest.mark.parametrize(
    "row",
    [
        (999, "done", json.dumps(VALUES), None, 0.1, 1.0),
        (-1, "done", json.dumps(VALUES), None, 0.1, 1.0),
        (1, "done", json.dumps({"other": 1.0}), None, 0.1, 1.0),
        (1, "done", json.dumps([1, 2]), None, 0.1, 1.0),
        (1, "done", json.dumps(VALUES | {"count": "two"}), None, 0.1, 1.0),
        (1, "done", "[" * 100_000, None, 0.1, 1.0),
        (1, "done", "no JSON", None, 0.1, 1.0),
    ],
    ids=["index", "negative", "keys", "list", "type", "deep", "text"],
)
def test_forged_points_are_refused_in_one_line(tmp_path, row):
    open_journal(tmp_path, STUDY, PROVENANCE).close()
    write_row(tmp_path, "points", *row)
    actions = [dp.read_study, lambda folder: dp.run_study(STUDY, folder, engine="serial")]
    if row[0] != 1:
        actions.append(dp.read_status)
    for action in actions:
        with pytest.raises(dp.InvalidInput, match="study") as caught:
            action(tmp_path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("config", [[], {}, {"task": "fake"}, {"task": 3, "fixed": 1}, "no JSON"])
def test_forged_configurations_are_refused_in_one_line(tmp_path, config):
    open_journal(tmp_path, STUDY, PROVENANCE).close()
    write_row(tmp_path, "about", "asked", config if config == "no JSON" else json.dumps(config))
    for action in (dp.read_study, dp.read_status):
        with pytest.raises(dp.InvalidInput) as caught:
            action(tmp_path)
        assert "\n" not in str(caught.value)


def test_rows_of_wrong_types_count_as_damaged(tmp_path):
    open_journal(tmp_path, STUDY, PROVENANCE).close()
    write_row(tmp_path, "points", 0, "done", json.dumps(VALUES), None, "soon", 1.0)
    write_row(tmp_path, "runs", "yesterday", "dotphase 1.0")
    assert dp.read_status(tmp_path).damaged == 1
    assert dp.run_study(STUDY, tmp_path, engine="serial")["done"].all()


ENDLESS = """CREATE VIEW {} AS
WITH RECURSIVE n(place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM n)
SELECT place, 'done', '{{}}', '', 0.1, 1.0, 'mark' FROM n"""


@pytest.mark.parametrize("table", ["points", "runs", "about"])
def test_views_without_end_are_not_read(tmp_path, table):
    open_journal(tmp_path, STUDY, PROVENANCE).close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database, database:
        database.execute(f"DROP TABLE {table}")
        database.execute(ENDLESS.format(table))
    for action in (dp.read_status, dp.read_study, lambda folder: dp.run_study(STUDY, folder)):
        with pytest.raises(dp.InvalidInput, match="its tables have changed"):
            action(tmp_path)


def test_rate_is_that_of_the_last_points():
    assert rate_of(0.0, [], 5.0) is None
    assert rate_of(0.0, [4.0, 2.0], 4.0) == 0.5
    times = [100.0 - k for k in range(RECENT + 1)]
    assert rate_of(-1000.0, times, 100.0) == 1.0
