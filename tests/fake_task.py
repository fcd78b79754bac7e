"""A task for studies that costs nothing, and fails or kills its worker when asked to."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from dotphase.config.parameters import Choice, Number, Parameter, Text, table
from dotphase.study.tasks import TASKS, Result, Task


def compute(parameters, seed):
    if parameters["kind"] == "bad":
        raise ArithmeticError(f"no answer\nat x = {parameters['x']:g}")
    if parameters["kind"] == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if parameters["kind"] == "chatty":
        os.write(1, b"not an answer\n")
    time.sleep(parameters["seconds"])
    while parameters["wait_for"] and not Path(parameters["wait_for"]).exists():
        time.sleep(0.01)
    return {
        "value": parameters["x"] / 3 + seed,
        "count": int(parameters["x"]),
        "converged": parameters["kind"] != "vague",
        "label": f"x{parameters['x']:g}",
    }


FAKE = Task(
    compute,
    table(
        Parameter("x", Number()),
        Parameter("kind", Choice(("good", "bad", "deadly", "chatty", "vague")), "good"),
        Parameter("wait_for", Text(), ""),
        Parameter("seconds", Number(at_least=0), 0.0),
    ),
    {
        "value": Result(float, "a number"),
        "count": Result(int, "a whole number"),
        "converged": Result(bool, "yes or no"),
        "label": Result(str, "a word"),
    },
    takes_model=False,
)
if "fake" not in TASKS:
    TASKS.register("fake", FAKE)
