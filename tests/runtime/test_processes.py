"""Worker processes: calls, reports, errors, deaths; nothing that a function prints is a message."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

import made_up_calls
from dotphase.errors import InvalidInput
from dotphase.runtime import processes
from dotphase.runtime.processes import Pool, Worker, receive


def run(*calls, size=1, max_seconds=0.0):
    """Messages of calls, in turn, as pairs of a kind and a value."""
    waiting, messages = list(calls), []
    with Pool(size) as pool:
        while waiting or pool.n_busy:
            pool.grow(1)
            for worker in pool.idle()[: len(waiting)]:
                function, *arguments = waiting.pop(0)
                worker.call("a call", function, *arguments, max_seconds=max_seconds)
            messages += [(message.kind, message.value) for _, message in pool.wait()]
    return messages


def test_reports_arrive_before_the_result():
    assert run((made_up_calls.count_to, 3)) == [
        ("report", 1), ("report", 2), ("report", 3), ("result", "done")
    ]  # fmt: skip


def test_output_of_a_function_is_no_message(capfd):
    assert run((made_up_calls.print_everywhere,)) == [("result", None)]
    assert capfd.readouterr() == ("", "")


def test_endless_output_does_not_fill_the_disk(monkeypatch):
    monkeypatch.setattr(processes, "MAX_STDERR", 1000)
    worker = Worker()
    for _ in range(2):
        worker.call("a call", made_up_calls.print_much, 5000)
        while worker.label is not None:
            receive([worker], 10.0)
    assert os.fstat(worker._stderr.fileno()).st_size == 0
    assert worker.close() == "killed by SIGKILL"


def test_an_exit_is_an_error_and_the_worker_goes_on():
    exits = [(made_up_calls.leave, reason) for reason in ("bye now", 3, None)]
    messages = run(*exits, (made_up_calls.raise_invalid,), (made_up_calls.count_to, 0))
    assert messages == [
        ("error", "SystemExit: bye now"), ("error", "SystemExit: 3"), ("error", "SystemExit"),
        ("error", "x = 1: must be 2"), ("result", "done"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "argument", "cause"),
    [
        ("die", 3, "exit code 3, last words"),
        ("kill_self", signal.SIGKILL, "killed by SIGKILL"),
        ("kill_self", signal.SIGSEGV, "killed by SIGSEGV"),
    ],
)
def test_a_death_is_reported_with_its_cause(name, argument, cause):
    call = (getattr(made_up_calls, name), argument)
    assert run(call, (made_up_calls.count_to, 0)) == [("death", cause), ("result", "done")]


def test_a_call_that_loops_is_ended_at_its_deadline():
    before = time.monotonic()
    assert run((made_up_calls.loop,), max_seconds=0.5) == [("late", "took longer than 0.5 s")]
    assert time.monotonic() - before < 60


def test_results_that_cannot_be_sent_are_errors():
    ((kind, text),) = run((made_up_calls.return_lambda,))
    assert kind == "error" and "pickle" in text


def test_files_of_the_folder_shadow_no_modules(tmp_path, monkeypatch):
    """But functions of the user's modules are found."""
    for name in ("uuid", "queue", "random", "dotphase"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "mine.py").write_text("import uuid\ndef add(a, b, report): return a + b\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    mine = __import__("mine")
    try:
        assert run((mine.add, 1, 2)) == [("result", 3)]
    finally:
        del sys.modules["mine"]


def test_workers_that_cannot_start_are_not_started_for_ever(monkeypatch):
    monkeypatch.setattr(processes, "COMMAND", ("-c", "raise SystemExit('no such thing')"))
    with pytest.raises(InvalidInput, match=r"workers = 1: cannot be started.*no such thing"):
        run((print,))


def test_workers_that_die_together_are_closed_once(monkeypatch):
    monkeypatch.setattr(processes, "COMMAND", ("-c", "raise SystemExit('no such thing')"))
    monkeypatch.setattr(processes, "MAX_FAILED_STARTS", 1)
    with pytest.raises(InvalidInput, match="no such thing"), processes.Pool(2) as pool:
        pool.grow(2)
        for worker in pool.workers:
            worker.process.wait(60)
        pool.wait()


def test_workers_end_with_their_parent():
    worker = Worker()
    assert receive([worker], 60.0)[0].kind == "ready"
    worker._connection.close()
    assert worker.process.wait(60) == 0
    worker.close()
