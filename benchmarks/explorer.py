"""Latency and memory of the explorer.

    python benchmarks/explorer.py latency [--moves 50] [--training]
    python benchmarks/explorer.py soak [--interactions 500]

Both start ``dotphase explore`` and drive its page in headless Chromium (Debian: chromium,
chromium-driver). Latency: the time from the event of a slider to new numbers in the table, measured
in the page and stored for the benchmark page (`make bench`). Soak: memory of the server and of the
page during random moves of sliders, fields, tabs and trainings.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

from browsing import Browser, explorer

DATA = Path(__file__).parent / "data" / "explorer.json"

SLIDE = """
const MAX_TIME = 30000; // milliseconds
const [name, value, done] = arguments;
const table = document.getElementById("numbers");
const before = table.dataset.point;
const began = performance.now();
const times = {};
const ends = {};
const BRANCHES = ["semantic", "positional"];
const data = (id) => document.getElementById(id)?.dataset ?? {};
const stage = (branch) => data(`${branch}-stage`).stage;
const exists = (branch) => data(`${branch}-train_loss`).value !== undefined;
// Time of the last final numbers: null without branches, undefined if some are late.
const last = (branches) => {
  const times = branches.map((branch) => ends[branch]);
  if (times.includes(undefined)) return undefined;
  return times.length ? Math.max(...times) : null;
};
const watch = () => {
  const now = performance.now() - began;
  if (table.dataset.point !== before) {
    times.first ??= now;
    for (const branch of BRANCHES) if (stage(branch) === "final") ends[branch] ??= now;
  }
  times.server = Number(document.body.dataset.milliseconds);
  if (!BRANCHES.every((branch) => branch in ends) && now < MAX_TIME) {
    requestAnimationFrame(watch);
    return;
  }
  // A missing branch takes longer: it is approached from a distant alpha.
  times.final = last(BRANCHES.filter(exists));
  times.missing = last(BRANCHES.filter((branch) => !exists(branch)));
  done(times);
};
const slider = document.getElementById(`${name}-slider`);
slider.value = value;
slider.dispatchEvent(new Event("input", { bubbles: true }));
watch();
"""

RANGES = {"alpha": (0.6, 2.4), "omega": (0.05, 0.5), "sigma": (0.4, 0.7)}


def latency(moves: int, training: bool) -> None:
    """Measure the times from a move of a slider to the first and the final numbers."""
    rng = random.Random(1)
    with explorer() as (address, _), Browser() as browser:
        browser.open(address)
        time.sleep(10)
        if training:
            browser.script("document.getElementById('d').value = 1500")
            browser.script("document.getElementById('seeds').value = 16")
            browser.script("document.getElementById('train').click()")
            time.sleep(5)
        times: dict[str, list[float]] = {"server": [], "first": [], "final": [], "missing": []}
        values = {"alpha": 1.5, "omega": 0.3, "sigma": 0.5}
        for _ in range(moves):
            name = rng.choice(list(RANGES))
            low, high = RANGES[name]
            value = round(rng.uniform(low, high), 2)
            if value == values[name]:
                continue
            values[name] = value
            measured = browser.script_async(SLIDE, name, str(value))
            for kind, series in times.items():
                if measured.get(kind, 0.0) is not None:  # None without branches of this kind
                    series.append(measured.get(kind, float("nan")))
        state = browser.script("return document.getElementById('train-state').textContent")
    print(f"{moves} moves{' while training' if training else ''} ({state})")
    labels = {
        "server": "first answer of the server",
        "first": "first numbers on the page",
        "final": "final numbers of existing branches",
        "missing": "final verdict on missing branches",
    }
    summary: dict[str, dict[str, float]] = {}
    for kind, series in times.items():
        finite = sorted(value for value in series if value == value)
        if finite:
            quantiles = (
                finite[len(finite) // 2],
                finite[int(0.95 * (len(finite) - 1))],
                finite[-1],
            )
            row = dict(zip(("median", "95%", "worst"), quantiles, strict=True))
            summary[labels[kind]] = row
            text = ", ".join(f"{name} {value:.0f} ms" for name, value in row.items())
            late = len(series) - len(finite)
            print(f"  {labels[kind]} ({len(series)}): {text}, {late} not within 30 s")
    if not training:
        DATA.write_text(json.dumps({"moves": moves, "milliseconds": summary}, indent=1) + "\n")


def resident(pid: int) -> float:
    """Megabytes of memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def soak(interactions: int) -> None:
    """Print the memory during random interactions."""
    rng = random.Random(2)
    with explorer() as (address, pid), Browser() as browser:
        browser.open(address)

        def report(done: int) -> None:
            browser.collect_garbage()
            heap = browser.script("return performance.memory.usedJSHeapSize") / 2**20
            print(
                f"  after {done:4d}: server {resident(pid):.0f} MB, page {heap:.1f} MB", flush=True
            )

        for done in range(interactions + 1):
            if done % (interactions // 5) == 0:
                report(done)
            interact(browser, rng)
            # A user sometimes pauses between moves, and background work advances.
            time.sleep(rng.choice([0.02, 0.1, 0.1, 0.6]))
        print("  errors of scripts:", browser.errors() or "none")


def interact(browser: Browser, rng: random.Random) -> None:
    """Do something that a user might do."""
    kind = rng.random()
    if kind < 0.75:
        name = rng.choice(list(RANGES))
        browser.slide(name, f"{rng.uniform(*RANGES[name]):.2f}")
    elif kind < 0.85:
        browser.type("ridge", rng.choice(["0.01", "0.1", "0.003", "nan", "<b>"]))
    elif kind < 0.9:
        browser.click(rng.choice(["tab-histogram", "tab-transition", "theme", "next-sentence"]))
    elif kind < 0.93:
        browser.type("mixing", rng.choice(["standard", "other"]))
    elif kind < 0.96:
        browser.type("d", "30")
        browser.click(rng.choice(["train", "cancel", "clear"]))
    else:
        browser.type("sequence", "".join(rng.choices("ABCDEFGHIJKLMNO", k=10)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", choices=["latency", "soak"])
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--interactions", type=int, default=500)
    options = parser.parse_args()
    if options.benchmark == "latency":
        latency(options.moves, options.training)
    else:
        soak(options.interactions)
