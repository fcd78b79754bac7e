"""Settings of the process that overlapping calls share."""

import threading

import pytest

from dotphase.runtime.shared_setting import SharedSetting


@pytest.fixture
def log():
    return []


@pytest.fixture
def shared(log):
    def change():
        log.append("changed")
        return lambda: log.append("restored")

    return SharedSetting(change)


def test_nested_blocks_change_and_restore_once(shared, log):
    with shared.hold(), shared.hold():
        assert log == ["changed"]
    assert log == ["changed", "restored"]


def test_a_block_that_fails_restores(shared, log):
    with pytest.raises(ArithmeticError), shared.hold():
        raise ArithmeticError
    assert log == ["changed", "restored"]
    with shared.hold():
        assert log[2:] == ["changed"]


def test_the_last_of_overlapping_threads_restores(shared, log):
    inside, leave = threading.Event(), threading.Event()

    def work():
        with shared.hold():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    with shared.hold():
        thread.start()
        assert inside.wait(60)
    assert log == ["changed"]
    leave.set()
    thread.join(60)
    assert log == ["changed", "restored"]


def test_a_change_that_fails_leaves_nothing_behind(log):
    def change():
        log.append("changed")
        if len(log) == 1:
            raise OSError("full")
        return lambda: log.append("restored")

    shared = SharedSetting(change)
    with pytest.raises(OSError, match="full"), shared.hold():
        pass
    with shared.hold():
        pass
    assert log == ["changed", "changed", "restored"]
