"""Stopping long work from outside at a moment when it can be stopped.

An exception that a signal raises in the middle of a compilation crashes the compiler, or is lost
in one of its callbacks. A program therefore asks (`ask`), and whatever computes for long looks
(`check`) between two compiled calls. As a library nobody asks, and Ctrl-C does what it does in any
Python program.
"""

from __future__ import annotations

import threading

_asked, _keeping = threading.Event(), threading.Event()


def request_stop() -> None:
    """Ask whatever computes to stop; safe in a handler of signals."""
    _asked.set()


def check() -> None:
    """Raise `KeyboardInterrupt` if somebody has asked to stop."""
    if _asked.is_set():
        raise KeyboardInterrupt


def begin_handover() -> None:
    """Say that finished work is being handed over: whoever asked to stop waits for it."""
    _keeping.set()


def is_handing_over() -> bool:
    """Whether finished work is being handed over."""
    return _keeping.is_set()
