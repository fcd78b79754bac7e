"""Shared jobs: started once, stopped without a window, and bounded in number."""

import pytest

from dotphase.explorer.shared_jobs import SharedJob, SharedJobs


@pytest.fixture
def started():
    """Jobs in the order of their start."""
    return []


@pytest.fixture
def jobs(started):
    return SharedJobs(3, lambda key, job: started.append(job))


def test_jobs_without_a_window_stop_and_their_number_is_bounded(jobs, started):
    first = jobs.watch("a", "window")
    assert jobs.watch("a", "other") is first and started == [first]
    jobs.watch("b", "window")
    assert not first.stop.is_set()  # the other window still watches it
    jobs.watch("c", "other")
    assert first.stop.is_set() and "a" not in jobs._jobs
    for number in range(50):
        job = jobs.watch(number, "window")
        job.done = True
    assert len(jobs) <= 5
    for number in range(500):
        jobs.watch("one", f"window{number}")
    assert len(jobs._watched) <= 64


def test_a_closed_window_stops_its_job(jobs):
    canceled = []
    job = jobs.watch("a", "window")
    job.on_cancel(lambda: canceled.append("a"))
    jobs.leave("window")
    assert job.stop.is_set() and canceled == ["a"] and len(jobs) == 0
    job.on_cancel(lambda: canceled.append("late"))
    assert canceled == ["a", "late"]


def test_a_failed_job_starts_again(jobs, started):
    first = jobs.watch("a", "window")
    first.fail(ArithmeticError("broken"))
    assert first.to_dict()["error"] == "ArithmeticError: broken"
    second = jobs.watch("a", "window")
    assert isinstance(second, SharedJob) and second is not first and len(started) == 2
    second.fail("no such model")
    assert second.error == "no such model"
