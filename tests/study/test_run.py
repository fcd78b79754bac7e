"""A study has the same dataset in spite of interruptions, failures and killed workers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
import fake_task  # noqa: F401
from dotphase.runtime import processes
from dotphase.storage.journal import read_journal
from dotphase.study import local

TESTS = Path(__file__).parents[1]


@pytest.fixture
def fake_workers(monkeypatch):
    monkeypatch.setattr(processes, "COMMAND", (str(TESTS / "fake_worker.py"),))


def fake(**sweep):
    return dp.Study("fake", sweep={"x": [1.0, 2.0, 3.0], **sweep}, seeds=[0, 7])


def identical(first: xr.Dataset, second: xr.Dataset) -> None:
    parts = [dataset.copy() for dataset in (first, second)]
    for part in parts:
        del part.attrs["started"]
    xr.testing.assert_identical(*parts)


def test_a_study_becomes_a_labeled_dataset(tmp_path, fake_workers):
    seen = []
    dataset = dp.run_study(fake(kind=["good", "chatty"]), tmp_path, workers=2, progress=seen.append)
    assert dict(dataset.sizes) == {"x": 3, "kind": 2, "seed": 2}
    point = dataset.sel(x=2.0, kind="chatty", seed=7)
    assert float(point["value"]) == 2 / 3 + 7 and int(point["count"]) == 2
    assert str(point["label"].values) == "x2" and bool(point["done"])
    assert dataset["value"].attrs == {
        "description": "a number", "long_name": "a number", "units": "1"}  # fmt: skip
    assert dataset["seed"].attrs == {"long_name": "index of the run", "units": "1"}
    assert dataset["x"].attrs == {"long_name": "x", "units": "1"}
    assert {"software", "started", "task", "specification", "jax"} <= set(dataset.attrs)
    with xr.open_dataset(tmp_path / "study.nc") as stored:
        xr.testing.assert_identical(stored.load(), dataset)
    assert sorted(os.listdir(tmp_path)) == ["study.lock", "study.nc", "study.sqlite"]
    assert (seen[0].done, seen[0].total) == (0, 12)
    assert seen[-1].done == 12 and seen[-1].result.rate > 0 and seen[-1].result.seconds_left == 0


def test_a_finished_study_is_not_computed_again(tmp_path, fake_workers, monkeypatch):
    first = dp.run_study(fake(), tmp_path)
    monkeypatch.setattr(processes, "COMMAND", ("-c", "raise SystemExit(1)"))
    xr.testing.assert_identical(dp.run_study(fake(), tmp_path), first)


def test_a_failed_point_does_not_stop_the_rest(tmp_path, fake_workers):
    study = fake(kind=["good", "bad", "vague"])
    dataset = dp.run_study(study, tmp_path, workers=2)
    assert dataset["done"].sel(kind=["good", "vague"]).all()
    assert not dataset["done"].sel(kind="bad").any()
    reasons = dataset["reason"].sel(kind="bad", seed=7).values.tolist()
    assert reasons[0] == "ArithmeticError: no answer at x = 1"
    assert np.isnan(dataset["value"].sel(kind="bad")).all()
    status = dp.read_status(tmp_path)
    assert (status.state, status.done, status.failed) == ("finished", 12, 6)
    assert {"x": 3.0, "kind": "bad", "seed": 0}.items() <= status.failures[-2].items()
    assert "failed at x = 3.0, kind = bad, seed = 0: ArithmeticError" in str(status)


def test_the_calling_process_gives_the_same_dataset(tmp_path, fake_workers):
    study = fake(kind=["good", "bad"])
    serial = dp.run_study(study, tmp_path / "serial", engine="serial")
    identical(serial, dp.run_study(study, tmp_path / "local", workers=1))
    events = []
    dp.run_study(study, tmp_path / "serial", engine="serial", progress=events.append)
    assert (events[0].done, events[-1].result.failed) == (
        6,
        6,
    )  # only failed points are tried again


def test_a_point_that_kills_its_worker_fails_alone(tmp_path, fake_workers):
    study = dp.Study("fake", {"x": 1.0}, {"kind": ["deadly", "good"]}, seeds=[0, 7])
    dataset = dp.run_study(study, tmp_path, workers=2)
    assert dataset["done"].sel(kind="good").all()
    reason = str(dataset["reason"].sel(kind="deadly", seed=0).values)
    assert reason == "3 worker processes died computing it: killed by SIGKILL"


UNGUARDED = """
import dotphase as dp
dp.run_study(dp.Study("regression", {"alpha": 1.0}), "s", engine="dask", workers=1)
"""


def test_a_script_without_guard_is_told_so_in_one_line(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "script.py").write_text(UNGUARDED)
    result = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True,
                            text=True, timeout=300)  # fmt: skip
    assert result.returncode == 1 and result.stderr.count("Traceback") == 1
    assert "needs the line: if __name__ == '__main__':" in result.stderr.splitlines()[-1]


MODEL = """
import os, sys
import uuid
import dotphase as dp

print("printed by the file")

def model(exits: str = "", ridge: float = 0.01):
    print("printed by the function")
    os.write(1, b"written to the descriptor")
    if exits == "politely":
        sys.exit("bye now")
    if exits == "at once":
        sys.stderr.write("last words\\n")
        sys.stderr.flush()
        os._exit(3)
    while exits == "never":
        pass
    return dp.positional_semantic(ridge=ridge)
"""


def test_models_that_print_exit_and_loop(tmp_path, monkeypatch):
    """In a folder with a file that has the name of a standard module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "MAX_DEATHS", 1)
    Path("model.py").write_text(MODEL)
    Path("uuid.py").write_text("raise SystemExit('the wrong uuid')")
    fixed = {"alpha": 1.0, "log2_points": 12}
    exits = ["", "politely", "at once"]
    study = dp.Study("theory", fixed, {"exits": exits}, model="model.py:model")
    dataset = dp.run_study(study, "s", workers=1)
    assert dataset["done"].values[:, 0].tolist() == [True, False, False]
    assert dataset["reason"].values[1:, 0].tolist() == [
        "model = 'model.py:model': raised SystemExit: bye now",
        "1 worker processes died computing it: exit code 3, last words",
    ]
    endless = dp.Study("theory", fixed | {"exits": "never"}, model="model.py:model")
    dataset = dp.run_study(endless, "endless", workers=1, max_seconds=0.5)
    assert str(dataset["reason"].values[0]) == "took longer than 0.5 s"


def test_workers_that_are_killed_take_no_result_with_them(tmp_path, fake_workers):
    psutil = pytest.importorskip("psutil")
    killed, others = [], psutil.Process().children()

    def kill(event):
        if event.done >= 2 and not killed:
            # Other tests may have processes of their own, such as a server.
            killed.extend(child for child in psutil.Process().children() if child not in others)
            for worker in killed:
                worker.kill()

    disturbed = dp.run_study(fake(), tmp_path / "disturbed", workers=2, progress=kill)
    assert killed
    identical(disturbed, dp.run_study(fake(), tmp_path / "quiet", workers=1))


def test_workers_that_cannot_start(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "COMMAND", ("-c", "raise SystemExit('no such thing')"))
    with pytest.raises(dp.InvalidInput, match=r"workers = 2: cannot be started.*no such thing"):
        dp.run_study(fake(), tmp_path, workers=2)


def test_an_interrupt_hands_over_what_is_done(tmp_path, fake_workers):
    def stop(event):
        if event.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(dp.Interrupted) as caught:
        dp.run_study(fake(), tmp_path, workers=1, progress=stop)
    partial = caught.value.finished
    assert 2 <= int(partial["done"].sum()) < 6
    assert not (tmp_path / "study.nc").exists()
    assert dp.read_status(tmp_path).state == "stopped"
    identical(dp.run_study(fake(), tmp_path, workers=2), dp.run_study(fake(), tmp_path))


def test_status_while_running(tmp_path, fake_workers):
    folder, flag = tmp_path / "s", tmp_path / "go on"
    study = dp.Study("fake", {"x": 1.0}, {"wait_for": ["", str(flag)]})
    seen = []

    def look(event):
        if event.done == 1:
            seen.append(dp.read_status(folder))
            flag.touch()

    dp.run_study(study, folder, workers=1, progress=look)
    status = seen[0]
    assert (status.state, status.done, status.pending) == ("running", 1, 1)
    assert status.rate > 0 and status.seconds_left > 0
    assert "points per second" in str(status)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"engine": "slurm"}, "engine"),
        ({"workers": 0}, "workers"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"max_seconds": 1.0, "engine": "serial"}, "max_seconds"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "scheduler"),
    ],
)
def test_bad_settings_write_nothing(tmp_path, change, field):
    with pytest.raises(dp.InvalidInput, match=f"^{field} = "):
        dp.run_study(fake(), tmp_path / "s", **change)
    assert list(tmp_path.iterdir()) == []


def start(spec: Path, out: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(TESTS / "fake_cli.py"), "0", "study", "run", str(spec), "--out",
         str(out), "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def done_in(out: Path) -> int:
    try:
        return dp.read_status(out).done
    except dp.InvalidInput:
        return 0


def test_a_killed_study_goes_on_and_loses_nothing(tmp_path, fake_workers):
    psutil = pytest.importorskip("psutil")
    spec, out, moments = tmp_path / "study.toml", tmp_path / "study", random.Random(20240206)
    spec.write_text(
        'task = "fake"\nseeds = 2\n[fixed]\nseconds = 0.05\n'
        "[sweep]\nx = { start = 1, stop = 20, count = 20 }\n"
    )
    stored: dict[int, object] = {}
    for number in range(3):
        process = start(spec, out)
        workers = []
        try:
            count = 10 * number + moments.randrange(1, 8)
            while done_in(out) < count:
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            time.sleep(moments.random() * 0.1)  # somewhere inside of a point
            workers = psutil.Process(process.pid).children()
        finally:
            process.kill()
            process.communicate()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive, "workers outlive the study"
        points = {point.index: point for point in read_journal(out).points}
        assert len(points) < 40
        assert stored.items() <= points.items()
        stored = points
    resumed = dp.run_study(spec, out, workers=2)
    identical(resumed, dp.run_study(spec, tmp_path / "uninterrupted", engine="serial"))
    assert stored.items() <= {point.index: point for point in read_journal(out).points}.items()
