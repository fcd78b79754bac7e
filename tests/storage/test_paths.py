"""Paths are checked before anything is computed; results are not lost with the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import xarray as xr

import dotphase as dp
from dotphase.cli.output import Files
from dotphase.figures.parts.style import new_figure
from dotphase.storage.paths import check_folder, check_writable


@pytest.mark.parametrize(
    "name", ["a.txt", "no/such/a.nc", "folder.nc", "n" * 300 + ".nc", "/proc/a.nc", "a\0.nc", ""]
)
def test_files_that_cannot_be_written_are_refused_before_any_work(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.nc").mkdir()
    with pytest.raises(dp.InvalidInput) as caught:
        check_writable("--out", name, (".nc",))
    assert caught.value.field == "--out" and "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "folder.nc"]


@pytest.mark.parametrize(
    "name", ["file", "file/inside", "no/such", "n" * 300, "/proc/new", "", " "]
)
def test_folders_that_cannot_be_made_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(dp.InvalidInput):
        check_folder("--out", name)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_names_up_to_the_limit_of_the_disk_are_taken(tmp_path):
    path = check_writable("out", tmp_path / f"{'n' * 250}.nc", (".nc",))
    files = Files(str(path), None)
    with files.written_after(xr.Dataset({"v": 1}), "curve"):
        pass
    assert path.stat().st_size > 0
    assert check_folder("out", tmp_path / "new") == tmp_path / "new"
    assert check_folder("out", tmp_path / "a" / "b", parents=True) == tmp_path / "a" / "b"


def test_a_figure_is_refused_before_it_is_drawn(tmp_path):
    error = r"^path = .*must end in .png or .svg or .pdf"
    with pytest.raises(dp.InvalidInput, match=error), new_figure(tmp_path / "a.txt", size=(1, 1)):
        raise AssertionError("something was drawn")


def test_results_are_printed_before_a_write_that_fails(tmp_path, monkeypatch, capsys):
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    files = Files(str(tmp_path / "a.nc"), None)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"), files.written_after(xr.Dataset(), "curve"):
        print("results")
    assert capsys.readouterr().out == "results\n"
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_also_where_nothing_can_be_printed(tmp_path):
    files = Files(str(tmp_path / "a.nc"), None)
    with pytest.raises(BrokenPipeError), files.written_after(xr.Dataset({"v": 1}), "curve"):
        raise BrokenPipeError
    assert [Path(file).name for file in tmp_path.iterdir()] == ["a.nc"]
