"""The command `study`: exit codes, one line of error, nothing harmed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fake_task  # noqa: F401
from dotphase.cli.commands.study import duration, status_line
from dotphase.cli.main import _run
from dotphase.runtime import processes
from dotphase.runtime.progress import ProgressEvent
from dotphase.storage.journal import read_journal
from dotphase.study.journal import read_status
from dotphase.study.run import StudyProgress

TESTS = Path(__file__).parents[1]
SPEC = 'task = "fake"\nseeds = 2\n[sweep]\nx = [1.0, 2.0]\n'


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(processes, "COMMAND", (str(TESTS / "fake_worker.py"),))


@pytest.fixture
def spec(tmp_path):
    file = tmp_path / "spec.toml"
    file.write_text(SPEC)
    return file


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_run_and_status_print_one_json_object(tmp_path, spec, capsys):
    out = tmp_path / "s"
    assert _run(["study", "run", str(spec), "--out", str(out), "--json"]) == 0
    shown, err = capsys.readouterr()
    result = json.loads(shown)
    assert err == ""
    assert (result["done"], result["failed"], result["total"]) == (4, 0, 4)
    assert result["dimensions"] == {"x": 2, "seed": 2}
    assert result["dataset"] == str(out / "study.nc")
    assert _run(["study", "status", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    assert _run(["study", "status", str(out)]) == 0
    assert "fake study, finished: 4 of 4 points done" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["bad", "vague"])
def test_failed_and_unconverged_points_exit_with_three(tmp_path, spec, capsys, kind):
    spec.write_text(SPEC + f'kind = ["good", "{kind}"]\n')
    assert _run(["study", "run", str(spec), "--out", str(tmp_path / "s")]) == 3
    expected = "4 failed" if kind == "bad" else "4 did not converge"
    assert expected in capsys.readouterr().out
    assert (tmp_path / "s" / "study.nc").exists()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SPEC.replace("task", "tsak"), ["tsak", "did you mean task"]),
        (SPEC.replace("x =", "y ="), ["sweep.y", "is not a parameter"]),
        (SPEC + "[fixed]\nx = 1.0\n", ["sweep.x", "must not be fixed"]),
        (SPEC.replace("seeds = 2", "seeds = [-2]"), ["seeds", "-2"]),
        (SPEC.replace("2.0", "nan"), ["sweep.x", "nan"]),
        ("[sweep", ["TOML"]),
    ],
)
def test_bad_specifications_write_nothing(spec, refused, text, parts):
    spec.write_text(text)
    assert refused(["study", "run", str(spec), "--out", "s"], parts)


def test_refusals_leave_the_results_alone(tmp_path, spec, capsys):
    out = tmp_path / "s"
    assert _run(["study", "run", str(spec), "--out", str(out)]) == 0
    before = contents(out)
    capsys.readouterr()
    spec.write_text(SPEC.replace("2.0", "3.0"))
    assert _run(["study", "run", str(spec), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert "sweep.x: [1.0, 2.0] stored, [1.0, 3.0] requested" in err and err.count("\n") == 1
    assert contents(out) == before
    for arguments in (["study", "status", str(tmp_path)], ["study", "status", "absent"],
                      ["study", "run", "absent.toml", "--out", str(out)],
                      ["study", "run", str(spec), "--out", "/dev/null/s"],
                      ["study", "run", str(spec), "--out", str(out), "--engine", "x"],
                      ["study", "rnu"]):  # fmt: skip
        assert _run(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


def command(limit, *arguments):
    return subprocess.Popen(
        [sys.executable, str(TESTS / "fake_cli.py"), str(limit), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def test_a_full_disk_keeps_what_is_done(tmp_path, spec):
    out = tmp_path / "s"
    spec.write_text(SPEC.replace("[1.0, 2.0]", "{ start = 0, stop = 999, count = 1000 }"))
    process = command(60_000, "study", "run", str(spec), "--out", str(out))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.count("\n") == 1 and err.startswith("dotphase: out = ")
    stored = read_journal(out).points
    assert 0 < len(stored) < 2000
    spec.write_text(SPEC)
    assert read_status(out).state == "stopped"
    assert stored == read_journal(out).points


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_exits_with_130_and_keeps_what_is_done(tmp_path, spec, number):
    out, never = tmp_path / "s", tmp_path / "never"
    spec.write_text(SPEC + f'wait_for = ["", "{never}"]\n')
    process = command(0, "study", "run", str(spec), "--out", str(out), "--workers", "3", "--json")
    try:
        while not (out / "study.sqlite").exists() or not _begun(out):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        shown, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "interrupted" in err and err.count("\n") == 1
    assert json.loads(shown)["done"] == len(read_journal(out).points) >= 1


def _begun(out):
    try:
        return read_status(out).done >= 1
    except ValueError:
        return False


def test_durations_have_convenient_units():
    assert [duration(s) for s in (5, 300, 9000, 400_000)] == ["5 s", "5.0 min", "2.5 h", "4.6 days"]


def test_the_live_line_is_made_from_the_event():
    first = ProgressEvent("fake study", 2, 9, StudyProgress(0, None, None, 0))
    assert status_line(first) == "fake study: 2 of 9 points"
    later = ProgressEvent("fake study", 6, 9, StudyProgress(1, 0.25, 12.0, 0))
    assert status_line(later) == "fake study: 5 of 9 points, 1 failed, 0.25 per second, 12 s left"
