"""The benchmark page of the documentation, measured and written anew: `make bench`.

    python benchmarks/page.py               # measure, add to the history, write page and figure
    python benchmarks/page.py --only-write  # from the history

Everything is a ratio within one run, so that runs on other machines and days can be compared; the
history is one JSON object per line. Figures of the GPU, of the explorer and of the standard errors
come from files that their benchmarks write (`GPU` and beside it), and are left out where there is
none.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent.parent / "docs"
HISTORY = DOCS / "data" / "benchmarks.jsonl"
GPU = Path(__file__).parent / "data" / "training_grid.json"
CALIBRATION, EXPLORER = GPU.with_name("calibration.json"), GPU.with_name("explorer.json")
PAGE, FIGURE = DOCS / "research-notes" / "benchmarks.md", DOCS / "images" / "benchmarks.png"
#: Figures of the history by name, and what they say.
RATIOS = {
    "textbook_default": "textbook / default settings",
    "textbook_14": "textbook / 2^14 points",
    "gradient_1000": "plain gradient / ours",
}
#: Share of the median of earlier runs on the same machine below which a figure is called slower.
SLOWER = 0.8


def machine() -> str:
    """The processor and how many cores of it there are."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{names[0] if names else platform.machine()}, {cores} of {os.cpu_count()} cores"


def measure() -> dict[str, Any]:
    """One line of the history."""
    import first_call
    import theory
    import training
    import waiting

    textbook = theory.against_textbook()
    tight = textbook["2^14"]
    sizes = theory.against_sizes()
    gradients = {d: training.per_step(d, 2.0) for d in (250, 500, 1000)}
    figures = {
        "when": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "textbook": textbook,
        "floor": theory.floor(tight["seconds"], int(tight["log2_points"])),
        "sizes": sizes,
        "copying": first_call.copying(),
        "first_calls": first_call.first_calls(),
        "first_runs": first_call.first_runs(),
        "missing_branch": first_call.missing_branch(),
        "side_by_side": theory.side_by_side(),
        "gradients": {str(d): row for d, row in gradients.items()},
        "ratios": {
            "textbook_default": textbook["default"]["ratio"],
            "textbook_14": tight["ratio"],
            "gradient_1000": gradients[1000]["speedup"],
        },
    }
    return figures | {"waiting": waiting.measure(figures, EXPLORER)}


def history() -> list[dict[str, Any]]:
    """All runs, the oldest first."""
    if not HISTORY.exists():
        return []
    return [json.loads(line) for line in HISTORY.read_text().splitlines() if line]


def speeds(run: dict[str, Any]) -> dict[str, float]:
    """Figures of a run by name; larger is faster."""
    rows = run.get("waiting", {})
    return run["ratios"] | {name: row["speed"] for name, row in rows.items()}


def verdict(runs: list[dict[str, Any]], name: str) -> str:
    """Whether the last run is slower than those before it on the same machine."""
    *earlier, last = runs
    others = [speeds(run) for run in earlier if run["machine"] == last["machine"]]
    same = [other[name] for other in others if name in other]
    if not same:
        return "first on this machine"
    share = speeds(last)[name] / float(np.median(same))
    return f"{share:.2f} of the median before" + (" (**slower**)" if share < SLOWER else "")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def page(runs: list[dict[str, Any]]) -> str:
    """The page, from the history; a line of it may say `how` it was measured, if otherwise."""
    last = runs[-1]
    book, floor = last["textbook"], last["floor"]
    solves = [
        [name if name == "default" else f"{name} points", f"2^{row['log2_points']}",
         str(row["evaluations"]), f"{row['ratio']:.0f}", f"{row['error']:.2%}"]
        for name, row in book.items() if name != "textbook"
    ]  # fmt: skip
    base = next(row["seconds"] for row in last["sizes"] if row["points"] == 14)
    sizes = [
        [str(row["length"]), str(row["rank"]), f"2^{row['points']}", f"{row['seconds'] / base:.1f}"]
        for row in last["sizes"]
    ]
    gradients = [
        [d, f"{row['speedup']:.0f}", f"{row['times_floor']:.1f}"]
        for d, row in last["gradients"].items()
    ]
    first = [
        [str(row["length"]), str(row["rank"]),
         *(f"{row[name]:.2g} s ({row[name] / last['copying']:.0f})"
           for name in ("first", "later", "second"))]
        for row in last["first_calls"]
    ]  # fmt: skip
    others = ("another alpha", "with another size")
    runs_at = [
        [f"`dp.{row['engine']}`", str(row["length"]),
         *(f"{row[name]:.2g} s" for name in ("first", "later", "same_size", "other_size"))]
        for row in last["first_runs"]
    ]  # fmt: skip
    missing, chains = last["missing_branch"], last["side_by_side"]
    slower = chains["threads"] / chains["processes"]
    kept = [[words, f"{last['ratios'][name]:.0f}", verdict(runs, name)]
            for name, words in RATIOS.items()]  # fmt: skip
    return f"""# Benchmarks

Measured by `make bench` on {last["when"]} ({last["machine"]}{last.get("how", "")}).
All figures are ratios within one run, of CPU times for the theory and of best times for gradients;
the solver is compiled before it is timed. This page, its figure and its history
(`docs/data/benchmarks.jsonl`) are written by the benchmark.

## The theory against the textbook

The semantic branch at alpha = 2, omega = .3. The textbook method (`benchmarks/textbook.py`) takes
a degree-7 rule, one BFGS minimisation with numerical gradients per node and average, and a damped
iteration; its worst error is {book["textbook"]["error"]:.1%}. Errors are the worst of q, V, theta,
training loss and test error against a solution with rtol 3e-4. A textbook that minimised once for
all averages would take a quarter of the time, and the ratios would be a quarter.

{table(["settings", "points at the end", "evaluations", "textbook / ours", "worst error"], solves)}
**The floor.** At 2^14 points, half of which are evaluated (the others are their mirror images), one
evaluation with two Newton steps a point needs {floor["operations"]:.0f} operations a step; at
{floor["peak"] / 1e9:.0f} Gflop/s, the rate at which the same core multiplies matrices, that is
{floor["seconds"] * 1e3:.2f} ms. A whole solve takes {floor["ratio"]:.0f} times that: it has to
find the point, its derivatives and its errors first.

## Cost against sizes

CPU time of a warm solve, in units of two tokens, rank one, 2^14 points.

{table(["tokens", "rank", "points", "cost"], sizes)}
## The first answer

Wall time of `import dotphase` and one solve with default settings: in a process that finds nothing
compiled, in one that finds what another has left, and of a second solve in the same process. In
brackets: over the time in which the same machine copies 64 MiB.

{table(["tokens", "rank", "very first", "later processes", "second solve"], first)}
Training and message passing (which trains a student to compare with) on one data set at d = 300.
Data sets come in few sizes, and another alpha of the same size compiles nothing.

{table(["call", "tokens", "very first", "later processes", *others], runs_at)}
The word that a branch does not exist (semantic, three tokens, alpha = .1):
{missing["first"]:.1f} s the very first time, {missing["later"]:.1f} s in later processes,
{missing["second"]:.1f} s at another alpha.

## Threads and processes

A diagram of 25 x 7 cells, whose chains are solved side by side, takes {slower:.2f} times as long in
threads of one process as in processes.

{waiting_rows(runs)}{explorer()}{calibration()}## Training

One gradient of the training loss at alpha = 2: the full graph differentiated by JAX in float32,
over ours in float64; and ours over reading the tokens twice, which is the least.

{table(["d", "plain / ours", "ours / reading"], gradients)}
{gpu()}
## History

{table(["figure", "this run", "against earlier runs"], kept)}
![Ratios of all runs, and the cost of a solve against its points](../images/benchmarks.png)

*Left: the ratios of every run kept, in their order. Right: cost of a solve against its points.*
"""


def waiting_rows(runs: list[dict[str, Any]]) -> str:
    """How long a user waits, from the last run."""
    rows = [
        [name, f"{row['seconds']:.2g}", f"{row['speed']:.3g}", f"{row['goal']:.3g}",
         verdict(runs, name)]
        for name, row in runs[-1].get("waiting", {}).items()
    ]  # fmt: skip
    if not rows:
        return ""
    return f"""## Waiting

Seconds of each answer: CPU time in this process, wall time in new ones (`benchmarks/waiting.py`).
The speed is the CPU time of the textbook solve over these seconds, unless the row says otherwise.

{table(["what", "seconds", "speed", "goal", "against earlier runs"], rows)}
"""


def explorer() -> str:
    """How soon the explorer answers, from the file of its benchmark."""
    if not EXPLORER.exists():
        return ""
    found = json.loads(EXPLORER.read_text())
    rows = [
        [what, *(f"{row[share]:.0f}" for share in ("median", "95%", "worst"))]
        for what, row in found["milliseconds"].items()
    ]
    return f"""## The explorer

Milliseconds from a move of a slider, over {found["moves"]} moves in headless Chromium
(`python benchmarks/explorer.py latency`).

{table(["what", "median", "95%", "worst"], rows)}
"""


def calibration() -> str:
    """Whether standard errors are right, from the file of its benchmark."""
    if not CALIBRATION.exists():
        return ""
    found = json.loads(CALIBRATION.read_text())
    names = list(dict.fromkeys(name for row in found["spread"].values() for name in row))
    rows = [
        [case, *(f"{row[name]:.2f}" if name in row else "" for name in names)]
        for case, row in found["spread"].items()
    ]
    return f"""## Standard errors

Spread of solutions with {found["seeds"]} sets of Gaussian points over the standard error that they
give; 1 is right, and 95% of right ones lie between .68 and 1.31
(`python benchmarks/calibration.py`).

{table(["case", *names], rows)}
"""


def gpu() -> str:
    """Figures of the GPU, from the file of its benchmark."""
    if not GPU.exists():
        return ""
    found = json.loads(GPU.read_text())
    rows = [
        [grid["name"], f"{grid['seconds']:.1f} s", f"{grid['runs_per_second']:.0f}",
         f"{grid['converged_share']:.1%}", f"{grid['useful_bandwidth'] / 1e9:.0f} GB/s"]
        for grid in found["grids"]
    ]  # fmt: skip
    head = ["what", "time", "runs a second", "converged", "useful traffic"]
    return f"""## Training grids on a GPU

One {found["device"]}, d = {found["d"]}, {found["precision"]}, by `{found["measured_by"]}`.

{table(head, rows)}"""


def draw(runs: list[dict[str, Any]]) -> None:
    """The ratios over the history, and the cost against points, for light and dark pages."""
    from dotphase.figures.parts.style import theme

    for shade, suffix in (("light", ""), ("dark", "-dark")):
        with theme(shade):
            panels(runs, FIGURE.with_stem(FIGURE.stem + suffix))


def panels(runs: list[dict[str, Any]], path: Path) -> None:
    """Draw both panels into a file."""
    from dotphase.figures.parts.style import COLORS, new_figure

    colours = [COLORS[name] for name in ("mixed", "linear", "uninformed")]
    with new_figure(path, size=(8.4, 3.2), columns=2) as (_, (left, right)):
        for (name, words), colour in zip(RATIOS.items(), colours, strict=True):
            values = [run["ratios"][name] for run in runs]
            left.semilogy(range(1, len(runs) + 1), values, "o-", color=colour, label=words)
        left.set(xlabel="run", ylabel="times faster")
        left.set_xticks(range(1, len(runs) + 1))
        left.legend(fontsize=8)
        rows = [row for row in runs[-1]["sizes"] if (row["length"], row["rank"]) == (2, 1)]
        points = 2.0 ** np.array([row["points"] for row in rows])
        cost = np.array([row["seconds"] for row in rows]) / rows[1]["seconds"]
        right.loglog(points, cost, "o-", color=COLORS["uninformed"], base=2)
        right.set(xlabel="points", ylabel="cost (2^14 points = 1)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only-write", action="store_true", help="measure nothing")
    if not parser.parse_args().only_write:
        line = json.dumps(measure())
        with HISTORY.open("a") as file:
            file.write(line + "\n")
    runs = history()
    PAGE.write_text(page(runs))
    draw(runs)
    slower = [name for name in speeds(runs[-1]) if "slower" in verdict(runs, name)]
    print("slower than before: " + (", ".join(slower) or "nothing"))


if __name__ == "__main__":
    main()
