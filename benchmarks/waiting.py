"""How long a user waits: one row for each answer, relative to the textbook solve.

Part of `make bench` (`benchmarks/page.py`). The speed of a row is the CPU time T of the textbook
solve (`benchmarks/textbook.py`) in the same run over the seconds of the row, so that runs on other
days can be compared. Rows of this process are CPU seconds, warm; those of new processes are wall
seconds, which only an idle machine measures well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import dotphase as dp
from theory import cpu_time

ROOT = Path(__file__).parent.parent
PAPER = dp.positional_semantic(0.3)
ALPHAS = np.linspace(0.5, 2.4, 20)

#: Warm answers of one process: what, how often it is repeated, and the speed to reach.
WARM: dict[str, tuple[Callable[[], Any], int, float]] = {
    "`dp.critical` with limits": (lambda: dp.critical(PAPER), 1, 18),
    "the same, omega = .15": (lambda: dp.critical(dp.positional_semantic(0.15)), 1, 18),
    "the same, sigma = .7": (lambda: dp.critical(dp.positional_semantic(sigma=0.7)), 1, 18),
    "`dp.curve`, 20 alphas, two branches": (lambda: dp.curve(PAPER, ALPHAS), 2, 50),
    "default solve, semantic, alpha 2": (lambda: dp.solve(PAPER, 2.0), 20, 1500),
    "the same on 2^14 points": (lambda: dp.solve(PAPER, 2.0, log2_points=14), 20, 3000),
    "positional, alpha .6": (lambda: dp.solve(PAPER, 0.6, "positional"), 3, 250),
    "semantic near its spinodal, alpha .8": (lambda: dp.solve(PAPER, 0.8), 1, 40),
    "missing branch, semantic, alpha .5": (lambda: dp.solve(PAPER, 0.5), 3, 150),
}
#: New processes with an empty folder of compiled code: arguments and the speed to reach.
COLD: dict[str, tuple[tuple[str, ...], float]] = {
    "`dotphase critical`, first time": (("-m", "dotphase", "critical", "--json"), 6),
    "demo": (("-m", "reproduction", "--quick", "--out", "{}"), 36 / 150),
    "tests": (("-m", "pytest", "-q", "-n", "3", "--dist", "loadfile"), 36 / 240),
}
#: Rows of the explorer (`benchmarks/explorer.py`): name, share of the moves, and goal in seconds.
EXPLORER = (
    ("final numbers of existing branches", "95%", 0.5),
    ("final numbers of existing branches", "worst", 1.5),
    ("final verdict on missing branches", "95%", 0.8),
)

Row = dict[str, float]


def row(textbook: float, seconds: float, goal: float) -> Row:
    """Seconds, speed, and the speed to reach."""
    return {"seconds": seconds, "speed": textbook / seconds, "goal": goal}


def warm(textbook: float) -> dict[str, Row]:
    """CPU seconds of answers in this process."""
    rows = {}
    for name, (answer, repeats, goal) in WARM.items():
        answer()
        rows[name] = row(textbook, cpu_time(answer, repeats)[0], goal)
    begun = time.perf_counter()
    dp.diagram(dp.positional_semantic, np.linspace(0.1, 2, 25), np.linspace(0, 0.5, 25))
    rows["diagram, 25 x 25"] = row(textbook, time.perf_counter() - begun, 36 / 15)
    return rows


def cold(textbook: float) -> dict[str, Row]:
    """Wall seconds of new processes."""
    rows = {}
    for name, (arguments, goal) in COLD.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, *(argument.format(folder) for argument in arguments)]
            environment = os.environ | {"HOME": folder, "DOTPHASE_CACHE": folder}
            begun = time.perf_counter()
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
            if done.returncode == 0:
                rows[name] = row(textbook, time.perf_counter() - begun, goal)
    return rows


def explorer(textbook: float, file: Path) -> dict[str, Row]:
    """Rows of the explorer from the file of its benchmark."""
    if not file.exists():
        return {}
    found = json.loads(file.read_text())["milliseconds"]
    return {
        f"explorer, {name}, {share}": row(textbook, found[name][share] / 1e3, 36 / goal)
        for name, share, goal in EXPLORER
    }


def measure(figures: Mapping[str, Any], file: Path) -> dict[str, Row]:
    """All rows; `figures` has those that other benchmarks measure."""
    textbook = figures["textbook"]["textbook"]["seconds"]
    costs = {(size["length"], size["rank"], size["points"]): size for size in figures["sizes"]}
    base, rank_two = costs[2, 1, 14]["seconds"], costs[4, 2, 13]["seconds"]
    rows = warm(textbook) | cold(textbook) | explorer(textbook, file)
    for first, goal in zip(figures["first_calls"], (36 / 1.8, None, 36 / 3), strict=False):
        if goal is not None:
            name = f"very first solve, {first['length']:.0f} tokens"
            rows[name] = row(textbook, first["first"], goal)
    rows["four tokens, rank two (two tokens = 1)"] = row(base, rank_two, 1 / 30)
    rows["solve at 2^14 points (floor = 1)"] = row(1.0, figures["floor"]["ratio"], 1 / 60)
    for name, each in rows.items():
        print(f"{name}: {each['seconds']:.3g} s, speed {each['speed']:.3g}"
              f" (goal {each['goal']:.3g})")  # fmt: skip
    return rows
