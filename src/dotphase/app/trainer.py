"""The process that trains: a job as JSON on stdin, one JSON object per line on stdout.

A process of its own, with low priority, so that the page stays quick while it works, a
cancelled training is gone at once, and its memory goes with it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any

from dotphase._numerics.plain import plain
from dotphase.errors import InvalidInput

#: How much this process gives way to others.
NICENESS = 5


def main() -> int:
    """Train as told on stdin."""
    job = json.loads(sys.stdin.readline())
    with suppress(OSError):
        os.nice(NICENESS)
    from dotphase.app.state import Point
    from dotphase.finite.runs import Run
    from dotphase.training.run import train

    point = Point(**job.pop("point"))
    tell(state="running", steps=0)

    def on_step(steps: int, most: int) -> None:
        tell(state="running", steps=steps)

    def on_run(run: Run) -> None:
        tell(state="running", run=run.to_dict())

    try:
        train(point.model(), point.alpha, **job, on_step=on_step, on_run=on_run)
    except InvalidInput as error:
        tell(state="failed", message=str(error))
        return 2
    tell(state="done")
    return 0


def tell(**what: Any) -> None:
    """One line for the page."""
    print(json.dumps(plain(what), allow_nan=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
