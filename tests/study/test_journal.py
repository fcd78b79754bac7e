"""Status of a study, and the studies that a folder accepts."""

from __future__ import annotations

import pytest

import dotphase as dp
import fake_task  # noqa: F401
from dotphase.storage.journal import PointResult
from dotphase.study.journal import RECENT, open_journal, rate_of, read_contents, read_status

PROVENANCE = {"software": "dotphase 1.0", "started": "now"}
STUDY = dp.Study("fake", sweep={"x": [1.0, 2.0, 3.0], "kind": ["good"]}, seeds=2)


def test_status_counts_and_names_the_points(tmp_path):
    with open_journal(tmp_path / "s", STUDY, PROVENANCE) as journal:
        done = [PointResult(k, {"value": 1.0}, None, 0.5) for k in (0, 4)]
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
        journal.record([PointResult(5, {"value": 1.0}, None, 0.5)])
    other = dp.Study("fake", sweep={"x": [1.0, 2.0], "kind": ["good"]}, seeds=2)
    with pytest.raises(dp.InvalidInput, match=r"sweep.x: \[1.0, 2.0, 3.0\] stored, \[1.0, 2.0\]"):
        open_journal(tmp_path, other, PROVENANCE)


def test_rate_is_that_of_the_last_points():
    assert rate_of(0.0, [], 5.0) is None
    assert rate_of(0.0, [4.0, 2.0], 4.0) == 0.5
    times = [100.0 - k for k in range(RECENT + 1)]
    assert rate_of(-1000.0, times, 100.0) == 1.0
