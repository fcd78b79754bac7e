"""Interrupt long computations between compiled calls.

An exception that a signal handler raises inside a compilation crashes the compiler, or is lost in
one of its callbacks. The command line therefore requests a stop (`request_stop`), and long
computations check for it between two compiled calls (`check`). In other programs nothing requests
a stop, and Ctrl-C raises `KeyboardInterrupt` as usual.
"""

import threading

_stop_requested, _handing_over = threading.Event(), threading.Event()


def request_stop() -> None:
    """Request that all computations of this process stop; safe in a signal handler."""
    _stop_requested.set()


def check() -> None:
    """Raise `KeyboardInterrupt` if a stop was requested."""
    if _stop_requested.is_set():
        raise KeyboardInterrupt


def begin_handover() -> None:
    """Announce that finished work is being returned: the command line waits for it."""
    _handing_over.set()


def is_handing_over() -> bool:
    """Return True if finished work is being returned."""
    return _handing_over.is_set()
