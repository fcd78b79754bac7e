"""Waiting for what a page or another process does in its own time."""

from __future__ import annotations

import time

#: Seconds that anything on the page may take before a test gives up; far above what is needed.
PATIENCE = 120


def wait_for(condition, what, patience=PATIENCE):
    """The first true value of `condition`."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")
