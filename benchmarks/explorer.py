"""How quickly the explorer answers, and whether its memory stays flat.

    python benchmarks/explorer.py latency [--moves 50] [--training]
    python benchmarks/explorer.py soak [--interactions 500]

Both start ``dotphase explore`` and drive its page in headless Chromium (Debian: chromium,
chromium-driver). Latency: from the event of a slider to new numbers in the table, measured in
the page, and kept for the benchmark page (`make bench`). Soak: random sliders, fields, tabs,
trainings and reloads; memory of the server and of the page before, half way and after.
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
const LONGEST = 30000; // milliseconds after which a move is given up
const [name, value, done] = arguments;
const table = document.getElementById("numbers");
const before = table.dataset.point;
const began = performance.now();
const seen = {};
const ends = {};
const BRANCHES = ["semantic", "positional"];
const data = (id) => document.getElementById(id)?.dataset ?? {};
const stage = (branch) => data(`${branch}-stage`).stage;
const there = (branch) => data(`${branch}-train_loss`).value !== undefined;
// When the last of some branches was known: null if there are none, nothing if it was not.
const last = (branches) => {
  const known = branches.map((branch) => ends[branch]);
  if (known.includes(undefined)) return undefined;
  return known.length ? Math.max(...known) : null;
};
const watch = () => {
  const now = performance.now() - began;
  if (table.dataset.point !== before) {
    seen.first ??= now;
    for (const branch of BRANCHES) if (stage(branch) === "final") ends[branch] ??= now;
  }
  seen.server = Number(document.body.dataset.milliseconds);
  if (!BRANCHES.every((branch) => branch in ends) && now < LONGEST) {
    requestAnimationFrame(watch);
    return;
  }
  // Numbers of what is there, and the word that something is not, which is searched for from afar.
  seen.final = last(BRANCHES.filter(there));
  seen.missing = last(BRANCHES.filter((branch) => !there(branch)));
  done(seen);
};
const slider = document.getElementById(`${name}-slider`);
slider.value = value;
slider.dispatchEvent(new Event("input", { bubbles: true }));
watch();
"""

RANGES = {"alpha": (0.6, 2.4), "omega": (0.05, 0.5), "sigma": (0.4, 0.7)}


def latency(moves: int, training: bool) -> None:
    """Times from a slider's move to first and to final numbers, of both branches."""
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
        place = {"alpha": 1.5, "omega": 0.3, "sigma": 0.5}
        for _ in range(moves):
            name = rng.choice(list(RANGES))
            low, high = RANGES[name]
            value = round(rng.uniform(low, high), 2)
            if value == place[name]:
                continue  # nothing would change
            place[name] = value
            seen = browser.script_async(SLIDE, name, str(value))
            for kind, values in times.items():
                if seen.get(kind, 0.0) is not None:  # there may be nothing of this kind
                    values.append(seen.get(kind, float("nan")))
        state = browser.script("return document.getElementById('train-state').textContent")
    print(f"{moves} moves{' while training' if training else ''} ({state})")
    words = {
        "server": "first answer of the server",
        "first": "first numbers on the page",
        "final": "final numbers of what is there",
        "missing": "word that a branch is missing",
    }
    kept: dict[str, dict[str, float]] = {}
    for kind, values in times.items():
        known = sorted(value for value in values if value == value)
        if known:
            shares = (known[len(known) // 2], known[int(0.95 * (len(known) - 1))], known[-1])
            some = kept[words[kind]] = dict(zip(("median", "95%", "worst"), shares, strict=True))
            told = ", ".join(f"{name} {value:.0f} ms" for name, value in some.items())
            late = len(values) - len(known)
            print(f"  {words[kind]} ({len(values)}): {told}, {late} not within 30 s")
    if not training:
        DATA.write_text(json.dumps({"moves": moves, "milliseconds": kept}, indent=1) + "\n")


def resident(pid: int) -> float:
    """Megabytes of memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def soak(interactions: int) -> None:
    """Random interactions, and memory on the way."""
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
            # A user looks between moves now and then; background work then gets somewhere.
            time.sleep(rng.choice([0.02, 0.1, 0.1, 0.6]))
        print("  errors of scripts:", browser.errors() or "none")


def interact(browser: Browser, rng: random.Random) -> None:
    """Something that a user might do."""
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
    parser.add_argument("what", choices=["latency", "soak"])
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--interactions", type=int, default=500)
    given = parser.parse_args()
    if given.what == "latency":
        latency(given.moves, given.training)
    else:
        soak(given.interactions)
