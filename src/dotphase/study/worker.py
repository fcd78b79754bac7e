"""Worker process: reads one point per line in JSON and writes one result per line.

`dotphase.study.local` starts it as ``python -m dotphase.study.worker``.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from dataclasses import asdict
from typing import IO

from dotphase.runtime import subprocesses


def main() -> None:
    """Compute points until the input ends."""
    output = os.fdopen(subprocesses.take_over_output(), "w", encoding="utf-8")
    from dotphase.study.tasks import compute_point

    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, requests), daemon=True).start()
    _write(output, {"ready": True})
    while True:
        _write(output, asdict(compute_point(**json.loads(requests.get()))))


def _read(source: IO[str], requests: queue.SimpleQueue[str]) -> None:
    for line in source:
        requests.put(line)
    # The parent process has ended: stop in the middle of a point.
    os._exit(0)


def _write(output: IO[str], value: object) -> None:
    try:
        output.write(json.dumps(value) + "\n")
        output.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
