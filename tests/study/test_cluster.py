"""Studies on a Dask cluster of two workers on this machine."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import ssl
import threading
import warnings

import pytest
import xarray as xr

import dotphase as dp
import fake_task  # noqa: F401
from dotphase.study.cluster import compute_chunk, connect, run_on_dask

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

#: Points that take no time.
STUDY = dp.Study("bayes", sweep={"alpha": [0.1, 0.2, 0.3, 0.4]}, seeds=2)


#: The scheduler of these tests has no keys.
OPEN = pytest.mark.filterwarnings("ignore:.*is not encrypted")


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


@OPEN
def test_a_killed_worker_changes_nothing(tmp_path, cluster):
    killed = []

    def kill(event):
        if event.done >= 1 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    on_cluster = dp.run_study(
        STUDY,
        tmp_path / "cluster",
        engine="dask",
        scheduler=cluster.scheduler_address,
        progress=kill,
    )
    assert killed and bool(on_cluster["done"].all())
    local = dp.run_study(STUDY, tmp_path / "local", workers=1)
    for dataset in (local, on_cluster):
        del dataset.attrs["started"]
    xr.testing.assert_identical(local, on_cluster)


@pytest.fixture
def workers_with_the_fake_task():
    """New workers import the task of these tests; a task that killed two of them is given up."""
    settings = {"worker.preload": ["fake_task"], "scheduler.allowed-failures": 1}
    with dask.config.set({f"distributed.{name}": value for name, value in settings.items()}):
        yield


def test_failures_and_deadly_points_stay_alone(tmp_path, workers_with_the_fake_task):
    sweep = {"kind": ["good", "bad", "deadly", "chatty", "vague"]}
    study = dp.Study("fake", {"x": 1.0}, sweep)
    dataset = dp.run_study(study, tmp_path / "s", engine="dask", workers=2)
    assert dataset["done"].sel(kind=["good", "chatty", "vague"]).all()
    reason = dataset["reason"].sel(seed=0)
    assert str(reason.sel(kind="bad").values) == "ArithmeticError: no answer at x = 1"
    assert str(reason.sel(kind="deadly").values) == "several workers died computing it"


def test_workers_that_ended_are_replaced_and_points_have_a_deadline(workers_with_the_fake_task):
    with connect(1, None) as client:
        client.cluster.sync(client.cluster.workers[0].close)
        study = dp.Study("fake", {"x": 3.0}, {"seconds": [0.0, 600.0]})
        steps = list(run_on_dask(client, study, [0, 1], max_seconds=1.0))
    points = sorted((point.index, point) for step in steps for point in step.finished)
    assert points[0][1].values["count"] == 3
    assert points[1][1].reason == "took longer than 1 s"


def test_workers_of_another_version_compute_nothing():
    with pytest.raises(dp.InvalidInput, match=r"must be 0\.0\.1"):
        compute_chunk([], 0.0, "0.0.1")


def test_a_cluster_without_workers_raises_a_warning(monkeypatch):
    monkeypatch.setattr("dotphase.study.cluster.WARN_SECONDS", 0.0)
    with connect(0, None) as client, pytest.raises(UserWarning, match="has no workers"):
        list(run_on_dask(client, dp.Study("fake", sweep={"x": [3.0]}), [0]))


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:9",
        "nonsense",
        "tcp://",
        "tcp://a:b:c",
        "sftp://127.0.0.1:9",
        "tcp://127.0.0.1:99999",
        "",
    ],
)
def test_an_address_where_nobody_answers(tmp_path, monkeypatch, address):
    monkeypatch.setattr("dotphase.study.cluster.CONNECT_SECONDS", 0.5)
    arguments = {"engine": "dask", "scheduler": address}
    with (
        pytest.raises(dp.InvalidInput, match="Dask scheduler") as caught,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        dp.run_study(dp.Study("fake", sweep={"x": [1.0]}), tmp_path / "s", **arguments)
    assert caught.value.field == "scheduler" and "\n" not in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_a_scheduler_that_is_lost(tmp_path):
    address: queue.SimpleQueue[str] = queue.SimpleQueue()

    async def serve() -> None:
        async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as running:
            address.put(running.address)
            await asyncio.sleep(0.5)

    scheduler = threading.Thread(target=asyncio.run, args=(serve(),))
    scheduler.start()
    arguments = {"engine": "dask", "scheduler": address.get()}
    with (
        pytest.warns(UserWarning, match="is not encrypted: everybody"),
        pytest.raises(dp.InvalidInput, match="was lost; 0 points are kept"),
    ):
        dp.run_study(dp.Study("fake", sweep={"x": [1.0]}), tmp_path / "s", **arguments)
    scheduler.join()


def test_a_client_that_closes_between_two_steps():
    with connect(0, None) as client:
        steps = run_on_dask(client, dp.Study("fake", sweep={"x": [3.0]}), [0])
        next(steps)
        client.close()
        with pytest.raises(dp.InvalidInput, match="was lost; 0 points are kept"):
            next(steps)


def test_a_cluster_that_is_started_talks_to_nobody_else():
    pytest.importorskip("cryptography")
    stranger = ssl.create_default_context()
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    with connect(0, None) as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        plain = address.replace("tls://", "tcp://")
        for other, keys in ((plain, {}), (address, {"ssl_context": stranger})):
            with pytest.raises(OSError):
                asyncio.run(distributed.comm.connect(other, timeout=0.5, **keys))
        assert client.scheduler_info()["workers"] == {}
        pages = client.cluster.scheduler.http_server
        assert {page.getsockname()[0] for page in pages._sockets.values()} == {"127.0.0.1"}


def test_two_clusters_stand_beside_each_other():
    with connect(0, None) as one, connect(0, None) as other:
        assert one.scheduler.address != other.scheduler.address
