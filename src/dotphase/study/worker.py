"""A process that computes points: one question per line of its input, one answer per line.

It is started by `dotphase.study.local` as ``python -m dotphase.study.worker``.
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
    """Answer until the input ends."""
    answers = os.fdopen(subprocesses.take_over_output(), "w", encoding="utf-8")
    from dotphase.study.tasks import compute_point

    questions: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, questions), daemon=True).start()
    _say(answers, {"ready": True})
    while True:
        _say(answers, asdict(compute_point(**json.loads(questions.get()))))


def _listen(source: IO[str], questions: queue.SimpleQueue[str]) -> None:
    for line in source:
        questions.put(line)
    # Whoever asked is gone, perhaps killed: nobody wants the answer.
    os._exit(0)


def _say(answers: IO[str], value: object) -> None:
    try:
        answers.write(json.dumps(value) + "\n")
        answers.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
