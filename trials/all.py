"""All trials, two at a time: `make trials`.

    python trials/all.py             # seed 0
    python trials/all.py --seed 1    # other cases
    python trials/all.py --share 0.1 # a tenth of them, to try

Prints what was tried and what failed, keeps the figures in ``docs/data/trials.json`` and writes
the page of the documentation from them. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from page import write

HERE = Path(__file__).parent
#: Trials and how many cases they have; the longest first.
TRIALS = {
    "kills": 50, "models": 150, "interrupts": 50, "random_models": 12, "cluster": 10,
    "command_line": 1000, "damage": 500, "full_disk": 18, "host_settings": 15, "machine": 2,
    "studies": 120, "threads": 24, "places": 60, "explorer": 1000, "api": 500,
}  # fmt: skip
#: Trials at once.
TOGETHER = 2


def one(name: str, cases: int, seed: int) -> int:
    """Run a trial in a process of its own; its exit code."""
    asked = ["--seed", str(seed), "--cases", str(cases)]
    keep = ["--record"] if cases == TRIALS[name] else []
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *asked, *keep], capture_output=True, text=True
    )
    print((done.stdout + done.stderr[-2000:]).strip(), flush=True)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    asked = parser.parse_args()
    began = time.monotonic()
    with ThreadPoolExecutor(TOGETHER) as pool:
        sizes = {name: max(1, round(asked.share * count)) for name, count in TRIALS.items()}
        codes = list(pool.map(lambda pair: one(*pair, asked.seed), sizes.items()))
    print(f"{(time.monotonic() - began) / 60:.0f} minutes in all")
    write()
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
