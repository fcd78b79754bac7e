"""Studies on a Dask cluster of two workers on this machine."""

from __future__ import annotations

import os
import signal

import pytest
import xarray as xr

import dotphase as dp
import fake_task  # noqa: F401

distributed = pytest.importorskip("distributed")

STUDY = dp.Study("theory", {"log2_points": 12}, {"alpha": [1.4, 1.6, 1.8, 2.0]}, seeds=2)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        preload=["fake_task"],
    ) as running:
        yield running


def test_a_killed_worker_changes_nothing(tmp_path, cluster):
    killed = []

    def kill(now):
        if now.done >= 1 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    there = dp.run_study(
        STUDY, tmp_path / "there", on="dask", scheduler=cluster.scheduler_address, progress=kill
    )
    assert killed and bool(there["done"].all())
    here = dp.run_study(STUDY, tmp_path / "here", workers=1)
    for dataset in (here, there):
        del dataset.attrs["started"]
    xr.testing.assert_identical(here, there)


def test_failures_and_deadly_points_stay_alone(tmp_path, cluster):
    sweep = {"kind": ["good", "bad", "deadly", "chatty", "vague"]}
    dataset = dp.run_study(
        dp.Study("fake", {"x": 1.0}, sweep),
        tmp_path / "s",
        on="dask",
        scheduler=cluster.scheduler_address,
    )
    assert dataset["done"].sel(kind=["good", "chatty", "vague"]).all()
    reason = dataset["reason"].sel(seed=0)
    assert str(reason.sel(kind="bad").values) == "ArithmeticError: no answer at x = 1"
    assert str(reason.sel(kind="deadly").values) == "several workers died computing it"


def test_an_address_where_nobody_answers(tmp_path, monkeypatch):
    monkeypatch.setattr("dotphase.sweep.cluster.CONNECT", 1)
    with pytest.raises(dp.InvalidInput, match=r"^scheduler = 'tcp://127.0.0.1:9'"):
        dp.run_study(
            dp.Study("fake", sweep={"x": [1.0]}),
            tmp_path / "s",
            on="dask",
            scheduler="tcp://127.0.0.1:9",
        )
