"""Journals store points safely and refuse other contents."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import unquote

import pytest

from dotphase.errors import InvalidInput
from dotphase.storage.journal import DATABASE, LOCK, Journal, PointResult, read_journal

PROVENANCE = {"software": "dotphase 1.0", "started": "now"}
CONFIG = {"engine": "none", "sweep": {"x": [1.0, 2.0, 3.0]}, "seeds": [0, 1]}


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_points_are_stored_exactly(tmp_path):
    values = {"value": 0.1 + 0.2, "count": 2**60, "converged": True, "label": "größer '"}
    bad = {"value": float("nan"), "count": -1, "converged": False, "label": ""}
    with Journal.open(tmp_path / "s", CONFIG, PROVENANCE) as journal:
        journal.record(
            [PointResult(4, values, None, 0.5), PointResult(1, None, "why", 0.1)], [0, 5]
        )
        journal.record([PointResult(0, bad, None, 0.5)])
        stored = read_journal(tmp_path / "s")
        assert stored.active and stored.running == (5,)
    with Journal.open(tmp_path / "s", CONFIG, PROVENANCE) as journal:
        assert journal.done == {0, 4} and journal.damaged == 0
    stored = read_journal(tmp_path / "s")
    assert stored.config == CONFIG and stored.provenance == PROVENANCE
    assert not stored.active and stored.running == ()
    assert [outcome.index for outcome in stored.points] == [0, 1, 4]
    assert stored.points[1].reason == "why" and stored.points[2].values == values
    assert str(stored.points[0].values["value"]) == "nan"
    brief = read_journal(tmp_path / "s", values=False)
    assert [outcome.values for outcome in brief.points] == [{}, None, {}]


def test_points_being_computed_are_forgotten_by_the_next_run(tmp_path):
    journal = Journal.open(tmp_path / "s", CONFIG, PROVENANCE)
    journal.record(started=[0, 1])
    # A killed process only loses its lock.
    journal._lock.close()
    assert read_journal(tmp_path / "s").running == ()
    with Journal.open(tmp_path / "s", CONFIG, PROVENANCE):
        assert read_journal(tmp_path / "s").running == ()
    journal._database.close()


def test_another_configuration_is_refused_with_the_difference(tmp_path):
    Journal.open(tmp_path, CONFIG, PROVENANCE).close()
    before = contents(tmp_path)
    other = {**CONFIG, "sweep": {"x": [1.0, 2.0]}, "seeds": [0, 1, 2]}
    with pytest.raises(InvalidInput) as caught:
        Journal.open(tmp_path, other, PROVENANCE)
    difference = (
        "sweep.x: [1.0, 2.0, 3.0] stored, [1.0, 2.0] requested; "
        "seeds: [0, 1] stored, [0, 1, 2] requested"
    )
    assert difference in str(caught.value)
    assert contents(tmp_path) == before


def test_folders_with_something_else_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidInput, match=r"other files \(thesis.tex\)"):
        Journal.open(tmp_path, CONFIG, PROVENANCE)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InvalidInput, match="must be a folder"):
        Journal.open(tmp_path / "thesis.tex", CONFIG, PROVENANCE)
    with pytest.raises(InvalidInput, match="in a folder that exists"):
        Journal.open(tmp_path / "no" / "study", CONFIG, PROVENANCE)
    with pytest.raises(InvalidInput, match=DATABASE):
        read_journal(tmp_path)


@pytest.mark.parametrize("kind", ["garbage", "foreign", "newer"])
def test_other_databases_are_refused(tmp_path, kind):
    if kind == "garbage":
        (tmp_path / DATABASE).write_bytes(b"SQLite? no. " * 1000)
    elif kind == "foreign":
        database = sqlite3.connect(tmp_path / DATABASE)
        database.execute("CREATE TABLE recipes (name TEXT)")
        database.close()
    else:
        Journal.open(tmp_path, CONFIG, PROVENANCE).close()
        database = sqlite3.connect(tmp_path / DATABASE)
        database.execute("PRAGMA user_version = 99")
        database.close()
    before = contents(tmp_path)
    with pytest.raises(InvalidInput):
        Journal.open(tmp_path, CONFIG, PROVENANCE)
    with pytest.raises(InvalidInput):
        read_journal(tmp_path)
    assert contents(tmp_path) == before


def test_a_row_that_has_changed_on_the_disk_is_computed_again(tmp_path):
    with Journal.open(tmp_path, CONFIG, PROVENANCE) as journal:
        journal.record([PointResult(k, {"value": 0.5 + k}, None, 0.1) for k in range(4)])
    database = sqlite3.connect(tmp_path / DATABASE)
    with database:
        database.execute("UPDATE points SET result = replace(result, '2.5', '6.5')")
        database.execute("UPDATE points SET result = substr(result, 1, 5) WHERE place = 0")
    database.close()
    stored = read_journal(tmp_path)
    assert [outcome.values for outcome in stored.points] == [{"value": 1.5}, {"value": 3.5}]
    assert stored.damaged == 2
    with Journal.open(tmp_path, CONFIG, PROVENANCE) as journal:
        assert journal.done == {1, 3} and journal.damaged == 2
        journal.record([PointResult(k, {"value": 0.5 + k}, None, 0.1) for k in (0, 2)])
    assert len(read_journal(tmp_path).points) == 4 and not read_journal(tmp_path).damaged


def test_flipped_bits_never_become_data(tmp_path, rng):
    folder = tmp_path / "s"
    with Journal.open(folder, CONFIG, PROVENANCE) as journal:
        points = [PointResult(k, {"value": 1 / (k + 3)}, None, 0.1) for k in range(50)]
        journal.record(points)
    truth = {outcome.index: outcome.values for outcome in points}
    intact = (folder / DATABASE).read_bytes()
    refused = dropped = 0
    for bit in rng.integers(8 * len(intact), size=200):
        damaged = bytearray(intact)
        damaged[bit // 8] ^= 1 << (bit % 8)
        (folder / DATABASE).write_bytes(damaged)
        try:
            stored = read_journal(folder)
        except InvalidInput:
            refused += 1
            continue
        dropped += stored.damaged
        assert stored.config == CONFIG and stored.provenance == PROVENANCE
        assert len(stored.points) + stored.damaged == len(truth)
        assert all(truth[outcome.index] == outcome.values for outcome in stored.points)
    assert refused and dropped


def test_a_folder_of_an_interrupted_start_is_used(tmp_path):
    (tmp_path / LOCK).touch()
    (tmp_path / DATABASE).touch()
    Journal.open(tmp_path, CONFIG, PROVENANCE).close()
    assert read_journal(tmp_path).config == CONFIG


def test_two_runs_at_once_are_refused(tmp_path):
    with (
        Journal.open(tmp_path, CONFIG, PROVENANCE),
        pytest.raises(InvalidInput, match="another process"),
    ):
        Journal.open(tmp_path, CONFIG, PROVENANCE)


def test_a_folder_that_cannot_be_written(tmp_path):
    folder = tmp_path / "s"
    with Journal.open(folder, CONFIG, PROVENANCE) as journal:
        journal.record([PointResult(0, {"value": 1.0}, None, 0.1)])
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(InvalidInput, match=r"^out = "):
            Journal.open(folder, CONFIG, PROVENANCE)
        with pytest.raises(InvalidInput, match=r"^out = "):
            Journal.open(folder / "new", CONFIG, PROVENANCE)
        assert len(read_journal(folder).points) == 1
    finally:
        folder.chmod(0o755)


def test_a_database_that_refuses_to_grow(tmp_path):
    journal = Journal.open(tmp_path, CONFIG, PROVENANCE)
    journal.record([PointResult(0, {"value": 1.0}, None, 0.1)])
    pages = journal._database.execute("PRAGMA page_count").fetchone()[0]
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(InvalidInput, match=r"^out = .*full.*finished points are kept"):
        journal.record([PointResult(1, {"label": "x" * 100_000}, None, 0.1)])
    journal.close()
    assert [outcome.index for outcome in read_journal(tmp_path).points] == [0]


def test_later_versions_are_stored(tmp_path):
    Journal.open(tmp_path, CONFIG, PROVENANCE).close()
    Journal.open(tmp_path, CONFIG, PROVENANCE | {"software": "dotphase 2.0"}).close()
    assert read_journal(tmp_path).software == ("dotphase 2.0",)


@pytest.mark.parametrize(
    "name",
    ["p%20q", "p%2fq", "a#b", "a?mode=memory", "it's \"so\"", "two\nlines", "größer-図", "n" * 250,
     "%00", "file:x", ":memory:", " space "],
)  # fmt: skip
def test_each_folder_has_its_own_journal(tmp_path, monkeypatch, name):
    decoded = tmp_path / unquote(name).replace("\0", "").replace("/", "")
    for folder, value in ((decoded, 1.0), (tmp_path / name, 2.0)):
        if value == 1.0 and folder in (tmp_path, tmp_path / name):
            continue
        with Journal.open(folder, CONFIG | {"engine": value}, PROVENANCE) as journal:
            journal.record([PointResult(0, {"value": value}, None, 0.1)])
    (tmp_path / "link").symlink_to(tmp_path / name, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path / name, Path(name), Path("link"), f"/{tmp_path}/{name}"):
        stored = read_journal(folder)
        assert stored.config["engine"] == 2.0 and stored.points[0].values == {"value": 2.0}


def test_the_configuration_is_checked_after_the_folder_is_locked(tmp_path, monkeypatch):
    # As if another process created the journal between the check of the folder and the lock.
    Journal.open(tmp_path, CONFIG, PROVENANCE).close()
    monkeypatch.setattr("dotphase.storage.journal._check_folder", lambda *_: None)
    with pytest.raises(InvalidInput, match="another configuration"):
        Journal.open(tmp_path, CONFIG | {"seeds": [5]}, PROVENANCE)
    Journal.open(tmp_path, CONFIG, PROVENANCE).close()
