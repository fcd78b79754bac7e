"""Waiting for a page or another process."""

from __future__ import annotations

import time

#: Seconds before a test gives up; far above the usual duration.
PATIENCE = 120


def wait_for(condition, description, patience=PATIENCE):
    """Return the first true value of `condition`."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"timeout while waiting for {description}")
