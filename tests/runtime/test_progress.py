"""Progress is logged, and shown in a line, by a function, or not at all."""

from __future__ import annotations

import logging
import sys

import pytest

from dotphase.errors import InvalidInput
from dotphase.runtime import progress
from dotphase.runtime.progress import ProgressCounter, ProgressEvent, reporter

STEP, END = ProgressEvent("solve", 3, 8), ProgressEvent("solve", 8, 8)


def test_a_line_is_replaced_and_erased(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 1.1, 2.0, 2.01])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    report = reporter(True)
    for event in (STEP, STEP, ProgressEvent("solve", 4), END):
        report(event)
    shown = capsys.readouterr()
    assert shown.err == "\rsolve: 3 of 8, 1 s\rsolve: 4, 2 s     \r" + " " * 13 + "\r"
    assert shown.out == ""


@pytest.mark.parametrize("interactive", [False, True])
def test_only_interactive_sessions_show_progress_by_default(capsys, monkeypatch, interactive):
    if interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    clock = iter([0.0, 2.0, 4.0, 5.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    for report in (reporter(False), reporter(None)):
        for event in (STEP, STEP, END):
            report(event)
    assert ("solve: 3 of 8, 4 s" in capsys.readouterr().err) == interactive


def test_every_event_is_logged_once(caplog):
    caplog.set_level(logging.DEBUG, "dotphase")
    events = []
    counter = ProgressCounter("branches", 2, reporter(events.append))
    counter.tick("first")
    counter.tick("second")
    reporter(None)(ProgressEvent("solve", 5))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "branches: 1 of 2"),
        ("INFO", "branches: 2 of 2"),
        ("DEBUG", "solve: 5 of ?"),
    ]
    assert [event.result for event in events] == ["first", "second"]
    with pytest.raises(InvalidInput, match="must be None, True, False or a function"):
        reporter("bar")
