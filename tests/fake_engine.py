"""An engine for studies that costs nothing, and fails or kills its worker when asked to."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from dotphase.sweep import tasks as engines


def compute(parameters, seed):
    if parameters["kind"] == "bad":
        raise ArithmeticError(f"no answer\nat x = {parameters['x']:g}")
    if parameters["kind"] == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if parameters["kind"] == "chatty":
        os.write(1, b"not an answer\n")
    while parameters["wait_for"] and not Path(parameters["wait_for"]).exists():
        time.sleep(0.01)
    return {
        "value": parameters["x"] / 3 + seed,
        "count": int(parameters["x"]),
        "converged": parameters["kind"] != "vague",
        "label": f"x{parameters['x']:g}",
    }


engines.ENGINES["fake"] = engines.Engine(
    compute,
    {
        "x": engines.Parameter(engines.number()),
        "kind": engines.Parameter(
            engines.one_of("good", "bad", "deadly", "chatty", "vague"), "good"
        ),
        "wait_for": engines.Parameter(lambda field, value: str(value), ""),
    },
    {
        "value": engines.Result(float, "a number"),
        "count": engines.Result(int, "a whole number"),
        "converged": engines.Result(bool, "yes or no"),
        "label": engines.Result(str, "a word"),
    },
)
