import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from dotphase.runtime import threads


@pytest.fixture
def two_cores(monkeypatch):
    """Threads of this test alone, on whatever machine."""
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(threads, "CORES", 2)
        monkeypatch.setattr(threads, "thread_pool", lambda: pool)
        yield pool


def test_blocks_are_shared_out_and_come_back_in_order(two_cores):
    together, seen = threading.Barrier(2, timeout=60), set()

    def work(index):
        if index < 2:
            together.wait()  # not passed by one thread
        seen.add(threading.current_thread())
        return index**2

    assert threads.map_blocks(work, 9) == [index**2 for index in range(9)]
    assert len(seen) == 2 and threading.current_thread() in seen


def test_blocks_do_not_wait_for_threads_that_are_busy(two_cores):
    free = threading.Event()
    try:
        for _ in range(2):
            two_cores.submit(free.wait)
        assert threads.map_blocks(lambda index: -index, 5) == [0, -1, -2, -3, -4]
    finally:
        free.set()


@pytest.mark.parametrize("own", [True, False])
def test_an_error_in_a_block_is_told(two_cores, own):
    begun, failed = [], threading.Event()

    def work(index):
        begun.append(index)
        if (threading.current_thread() is threading.main_thread()) is own:
            failed.set()
            raise FloatingPointError("this block")
        assert failed.wait(60)

    with pytest.raises(FloatingPointError, match="this block"):
        threads.map_blocks(work, 50)
    assert len(begun) < 50


@pytest.mark.parametrize(
    ("given", "cores"),
    [("3", 3), ("", 5), ("0", 5), ("many", 5), ("03", 3), ("9" * 5000, 5), ("7", 5)],
)
def test_cores_may_be_limited(monkeypatch, given, cores):
    monkeypatch.setenv("NPROC", given)
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 5)
    assert threads._count_cores() == cores
    assert len(threads.os.environ["NPROC"]) < 5


def test_calls_within_a_time_limit():
    assert threads.call_within(60.0, "a", lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        threads.call_within(60.0, "a", lambda: 1 // 0)


def test_calls_that_never_return_occupy_few_threads(monkeypatch):
    monkeypatch.setattr(threads, "MAX_LIMITED_CALLS", 2)
    before, free = threading.active_count(), threading.Event()
    try:
        for key in ("a", "a", "b", "c", "d", "a"):
            with pytest.raises(TimeoutError):
                threads.call_within(0.01, key, free.wait)
        assert threading.active_count() <= before + 2
    finally:
        free.set()
    while threads._limited_calls:
        with suppress(TimeoutError):
            threads.call_within(60.0, "e", lambda: None)
        threads._limited_calls.pop("e", None)
    assert threads.call_within(60.0, "c", lambda: 1) == 1
