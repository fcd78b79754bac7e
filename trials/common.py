"""What the trials have in common: seeded cases, a count of failures, a record of the last runs.

A trial is a program: it makes its cases from a seed, prints what was tried and what failed, and
exits with 1 if anything did. With ``--record`` its figures go into ``docs/data/trials.json``,
from which the page of the documentation is made.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs" / "data" / "trials.json"
#: Failures that are shown in full.
SHOWN = 20

# Hundreds of programs start: modules are compiled once, whatever the shell says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


class Wrong(AssertionError):
    """What a case did that it must not do."""


class Trial:
    """Counts cases.

    Attributes
    ----------
    name, about : of the trial, the second in one line
    seed, cases : from the command line
    rng : randomness of the cases
    """

    def __init__(self, name: str, about: str, cases: int) -> None:
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--cases", type=int, default=cases)
        parser.add_argument("--record", action="store_true", help="keep the figures for the docs")
        asked = parser.parse_args()
        self.name, self.about = name, about
        self.seed, self.cases, self.record = asked.seed, asked.cases, asked.record
        self.rng = np.random.default_rng([self.seed, sum(map(ord, name))])
        self.tried, self.failures, self.notes = 0, list[str](), dict[str, Any]()
        self.began = time.monotonic()

    @contextmanager
    def case(self, what: object) -> Iterator[None]:
        """One case: whatever is raised inside is a failure."""
        self.tried += 1
        try:
            yield
        except KeyboardInterrupt:
            raise
        except Wrong as wrong:
            self._fail(what, str(wrong))
        except BaseException:
            self._fail(what, traceback.format_exc(limit=-4))

    def _fail(self, what: object, how: str) -> None:
        shown = ascii(what)
        self.failures.append(shown[:400])
        if len(self.failures) <= SHOWN:
            print(f"FAILED case {self.tried - 1}: {shown[:600]}\n  {how.strip()}", flush=True)

    def choose(self, options: Any) -> Any:
        """One of the options; they are not turned into an array."""
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    def end(self) -> None:
        """Say what happened, and exit accordingly."""
        seconds = time.monotonic() - self.began
        failed = len(self.failures)
        more = "".join(f", {name} {value}" for name, value in self.notes.items())
        print(f"{self.name}: {self.tried} tried, {failed} failed "
              f"(seed {self.seed}, {seconds:.0f} s{more})", flush=True)  # fmt: skip
        if self.record:
            self._write(failed, seconds)
        sys.stdout.flush()
        # Threads that still compile for a case that was given up must not hold up the others.
        os._exit(1 if failed else 0)

    def _write(self, failed: int, seconds: float) -> None:
        now = {"seed": self.seed, "tried": self.tried, "failed": failed, "seconds": round(seconds)}
        record(self.name, self.about, now | self.notes)


def record(name: str, about: str, run: dict[str, Any]) -> None:
    """Keep the figures of a run beside those of the last one with another seed."""
    RECORD.touch()
    with RECORD.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # trials run two at a time
        found = json.loads(file.read() or "{}")
        others = [
            one for one in found.get(name, {"runs": []})["runs"] if one["seed"] != run["seed"]
        ]
        found[name] = {"about": about, "runs": [*others, run][-2:]}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(found, indent=1, sort_keys=True) + "\n")


def require(condition: bool, what: str) -> None:
    """Fail the case unless a condition holds."""
    if not condition:
        raise Wrong(what)


def environment(cache: str | Path | None = None) -> dict[str, str]:
    """Variables of programs that trials start: this checkout, and a cache of its own."""
    path = os.pathsep.join(
        [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    chosen = {"PYTHONPATH": path, "PYTHONWARNINGS": "default"}
    return os.environ | chosen | ({} if cache is None else {"DOTPHASE_CACHE": str(cache)})


def program(command: str) -> list[str]:
    """Arguments that start a command of dotphase, or `reproduction ...`."""
    first, *rest = command.split()
    module = ["reproduction"] if first == "reproduction" else ["dotphase", first]
    return [sys.executable, "-m", *module, *rest]


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder, gone afterwards; also the current one meanwhile."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="dotphase-trial-") as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def run(trial: Trial, cases: Callable[[Trial], None]) -> None:
    """Run a trial to its end."""
    # What it starts can be interrupted, also where this was started by a script in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with folder():
        cases(trial)
        trial.end()
