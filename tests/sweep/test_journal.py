"""The folder of a study: what it keeps and what it refuses."""

from __future__ import annotations

import os
import sqlite3

import pytest

import dotphase as dp
import fake_task  # noqa: F401
from dotphase.sweep.journal import DATABASE, RECENT, Journal, rate_of, read_record, read_status
from dotphase.sweep.tasks import PointResult

ABOUT = {"software": "dotphase 1.0", "started": "now"}
STUDY = dp.Study("fake", sweep={"x": [1.0, 2.0, 3.0]}, seeds=2)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_points_are_kept_as_they_were(tmp_path):
    values = {"value": 0.1 + 0.2, "count": 2**60, "converged": True, "label": "größer '"}
    bad = {"value": float("nan"), "count": -1, "converged": False, "label": ""}
    with Journal.open(tmp_path / "s", STUDY, ABOUT) as journal:
        journal.record(
            [PointResult(4, values, None, 0.5), PointResult(1, None, "why", 0.1)], [0, 5]
        )
        journal.record([PointResult(0, bad, None, 0.5)])
        assert journal.done() == {0, 4}
        status = read_status(tmp_path / "s")
        assert (status.state, status.done, status.failed, status.pending) == ("running", 2, 1, 3)
        assert status.running == ({"x": 3.0, "seed": 1},)
        assert status.failures == ({"x": 1.0, "seed": 1, "reason": "why"},)
    record = read_record(tmp_path / "s")
    assert record.study == STUDY and record.about == ABOUT
    assert [outcome.index for outcome in record.outcomes] == [0, 1, 4]
    assert record.outcomes[2].values == values
    assert str(record.outcomes[0].values["value"]) == "nan"
    status = read_status(tmp_path / "s")
    assert status.state == "stopped" and status.running == ()


def test_points_being_computed_are_forgotten_by_the_next_run(tmp_path):
    journal = Journal.open(tmp_path / "s", STUDY, ABOUT)
    journal.record(started=[0, 1])
    # As a killed process would leave it: no goodbye, only the lock is gone.
    journal._lock.close()
    assert read_status(tmp_path / "s").running == ()
    with Journal.open(tmp_path / "s", STUDY, ABOUT):
        assert read_status(tmp_path / "s").running == ()
    journal._database.close()


def test_another_specification_is_refused_with_the_difference(tmp_path):
    Journal.open(tmp_path, STUDY, ABOUT).close()
    before = contents(tmp_path)
    other = dp.Study("fake", sweep={"x": [1.0, 2.0]}, seeds=3)
    with pytest.raises(dp.InvalidInput) as caught:
        Journal.open(tmp_path, other, ABOUT)
    assert "sweep.x [1.0, 2.0, 3.0] -> [1.0, 2.0]; seeds [0, 1] -> [0, 1, 2]" in str(caught.value)
    assert contents(tmp_path) == before


def test_folders_with_something_else_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(dp.InvalidInput, match=r"something else \(thesis.tex\)"):
        Journal.open(tmp_path, STUDY, ABOUT)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(dp.InvalidInput, match="must be a folder"):
        Journal.open(tmp_path / "thesis.tex", STUDY, ABOUT)
    with pytest.raises(dp.InvalidInput, match="in a folder that exists"):
        Journal.open(tmp_path / "no" / "study", STUDY, ABOUT)


@pytest.mark.parametrize("kind", ["garbage", "foreign", "newer"])
def test_other_databases_are_refused(tmp_path, kind):
    if kind == "garbage":
        (tmp_path / DATABASE).write_bytes(b"SQLite? no. " * 1000)
    elif kind == "foreign":
        database = sqlite3.connect(tmp_path / DATABASE)
        database.execute("CREATE TABLE recipes (name TEXT)")
        database.close()
    else:
        Journal.open(tmp_path, STUDY, ABOUT).close()
        database = sqlite3.connect(tmp_path / DATABASE)
        database.execute("PRAGMA user_version = 99")
        database.close()
    before = contents(tmp_path)
    with pytest.raises(dp.InvalidInput):
        Journal.open(tmp_path, STUDY, ABOUT)
    with pytest.raises(dp.InvalidInput):
        read_status(tmp_path)
    assert contents(tmp_path) == before


def test_a_folder_that_was_barely_begun_is_used(tmp_path):
    (tmp_path / "study.lock").touch()
    (tmp_path / DATABASE).touch()
    Journal.open(tmp_path, STUDY, ABOUT).close()
    assert read_status(tmp_path).total == 6


def test_two_runs_at_once_are_refused(tmp_path):
    with (
        Journal.open(tmp_path, STUDY, ABOUT),
        pytest.raises(dp.InvalidInput, match="another process"),
    ):
        Journal.open(tmp_path, STUDY, ABOUT)


def test_status_of_what_is_no_study(tmp_path):
    with pytest.raises(dp.InvalidInput, match=DATABASE):
        read_status(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    folder = tmp_path / "s"
    with Journal.open(folder, STUDY, ABOUT) as journal:
        journal.record([PointResult(0, {"value": 1.0}, None, 0.1)])
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(dp.InvalidInput, match=r"^out = "):
            Journal.open(folder, STUDY, ABOUT)
        with pytest.raises(dp.InvalidInput, match=r"^out = "):
            Journal.open(folder / "new", STUDY, ABOUT)
        assert read_status(folder).done == 1
    finally:
        folder.chmod(0o755)


def test_a_database_that_refuses_to_grow(tmp_path):
    journal = Journal.open(tmp_path, STUDY, ABOUT)
    journal.record([PointResult(0, {"value": 1.0}, None, 0.1)])
    pages = journal._database.execute("PRAGMA page_count").fetchone()[0]
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(dp.InvalidInput, match=r"^out = .*full.*finished is kept"):
        journal.record([PointResult(1, {"label": "x" * 100_000}, None, 0.1)])
    journal.close()
    assert [outcome.index for outcome in read_record(tmp_path).outcomes] == [0]


def test_later_versions_are_remembered(tmp_path):
    Journal.open(tmp_path, STUDY, ABOUT).close()
    Journal.open(tmp_path, STUDY, ABOUT | {"software": "dotphase 2.0"}).close()
    assert read_record(tmp_path).software == ("dotphase 2.0",)


def test_rate_is_that_of_late():
    assert rate_of(0.0, [], 5.0) is None
    assert rate_of(0.0, [4.0, 2.0], 4.0) == 0.5
    times = [100.0 - k for k in range(RECENT + 1)]
    assert rate_of(-1000.0, times, 100.0) == 1.0
