"""The command line with bad input: one line and exit 2, or a result; never a traceback."""

from __future__ import annotations

import io
import json
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from common import Trial, Wrong, require, run
from hostile import GRIDS, LONG, NUMBERS, PATHS, WHOLES, WORDS

#: Seconds after which a case that computes is given up; it is then no failure of the input.
LIMIT = 120
MODEL = {
    "--omega": NUMBERS, "--sigma": NUMBERS, "--ridge": NUMBERS,
    "--mixing": (*WORDS, *PATHS, "bad.json", "deep.json", "huge.json", "bits.json"),
    "--student-rank": WHOLES, "--seed": WHOLES,
    "--model": ("no.py:x", "bad.py:model", "bad.py:number", "bad.py:raises", "bad.py:", ":",
                "bad.py", *WORDS),
    "--set": ("", "=", "a", "a=b=c", "omega=2", "omega", "x=" + LONG),
}  # fmt: skip
SOLVER = {"--log2-points": WHOLES, "--rtol": NUMBERS, "--max-log2-points": WHOLES}
FILES = {"--out": PATHS, "--plot": PATHS}
#: A cheap command line of every command, and what its options are given instead.
COMMANDS = {
    "solve": (["--alpha", "1.5", "--log2-points", "12"],
              {"--alpha": NUMBERS, "--branch": WORDS, "--breaking": WORDS,
               **SOLVER, **MODEL}),
    "critical": (["--log2-points", "12", "--omega", "2"], {"--log2-points": WHOLES, **MODEL}),
    "curve": (["--alphas", "0:1:2", "--out", "c.nc"],
              {"--alphas": GRIDS, "--branches": WORDS, "--theory": WORDS,
               **FILES, **SOLVER, **MODEL}),
    "diagram": (["--alphas", "0:1:2", "--omegas", "0:.5:2", "--out", "d.nc"],
                {"--alphas": GRIDS, "--omegas": GRIDS, "--values": GRIDS,
                 "--parameter": WORDS, **FILES, **MODEL}),
    "train": (["--d", "20", "--alpha", "1", "--start", "semantic", "--seeds", "1", "--steps", "2"],
              {"--d": WHOLES, "--alpha": NUMBERS, "--start": WORDS,
               "--seeds": WHOLES, "--optimizer": WORDS, "--steps": WHOLES,
               "--lr": NUMBERS, "--runs-per-batch": WHOLES, "--scale": NUMBERS,
               "--plot": PATHS, **MODEL}),
    "amp": (["--d", "20", "--alpha", "1", "--start", "semantic", "--iterations", "2"],
            {"--d": WHOLES, "--alpha": NUMBERS, "--start": WORDS,
             "--seeds": WHOLES, "--plot": PATHS, "--iterations": WHOLES,
             **MODEL}),
    "dynamics": (["--alpha", "1", "--start", "semantic", "--lr", "4", "--steps", "2", "--ensemble",
                  "6", "--repetitions", "2"],
                 {"--alpha": NUMBERS, "--start": WORDS, "--lr": NUMBERS,
                  "--steps": WHOLES, "--momentum": NUMBERS, "--theta0": NUMBERS,
                  "--m0": NUMBERS, "--q0": NUMBERS, "--batch-fraction": NUMBERS,
                  "--ensemble": WHOLES, "--repetitions": WHOLES, **FILES, **MODEL}),
    "compare": (["--alphas", "0:1:2", "--d", "20"],
                {"--alphas": GRIDS, "--d": WHOLES, "--seeds": WHOLES,
                 "--branches": WORDS, **FILES, **SOLVER, **MODEL}),
    "histogram": (["--runs", "0"],
                  {"--mechanism": WORDS, "--runs": WHOLES, "--epochs": WHOLES,
                   "--target": NUMBERS, "--sequence": WORDS, "--out": PATHS,
                   "--samples": ("0", "9", "1" + "0" * 15, *WHOLES[:16]),
                   "--emergence": GRIDS, "--weights": PATHS}),
    "study run": (["spec.toml", "--out", "s", "--engine", "serial"],
                  {"--out": PATHS, "--engine": WORDS, "--workers": WHOLES,
                   "--model": WORDS, "--set": WORDS}),
    "study status": (["nothing"], {}),
    "explore": (["--port", "99999", "--no-browser"],
                {"--port": ("-1", "65536", "x", "", LONG)}),
}  # fmt: skip
#: Commands that serve, or train for long, by right, if nothing is asked of them.
UNENDING = ("explore", "histogram")
#: Specifications of studies, all of them wrong.
SPECS = (
    "", "task", "task = ", "task = 1", 'task = "nothing"', 'task = "theory"',
    'task = "theory"\n[sweep]\nalpha = []', 'task = "theory"\n[sweep]\nalpha = [1, 1]',
    'task = "theory"\n[sweep]\nalpha = "1:2"', 'task = "theory"\n[sweep]\nbeta = [1.0]',
    'task = "theory"\nseeds = 0\n[sweep]\nalpha = [1.0]',
    'task = "theory"\nseeds = 100000000\n[sweep]\nalpha = [1.0]',
    f'task = "theory"\nseeds = {LONG}\n[sweep]\nalpha = [1.0]',
    'task = "theory"\n[fixed]\nalpha = nan', 'task = "theory"\n[fixed]\nalpha = inf',
    'task = "theory"\n[fixed]\nalpha = 1.0\nstudent_rank = 1' + "0" * 30,
    'task = "theory"\nmodel = "no.py:x"\n[fixed]\nalpha = 1.0', "x = " + "[" * 3000 + "]" * 3000,
    'task = "theory"\n[fixed]\nalpha = 1.0\nmixing = "deep.json"', "\x00", "a = 'é",
    'task = "theory"\n[fixed]\nalpha = 1.0\n[sweep]\nalpha = [1.0]',
    'task = "theory"\n[sweep]\nalpha = {a = 1}', 'task = ["theory"]', "[fixed]\n[fixed]",
)  # fmt: skip
MODELS = """
import dotphase as dp
model = 3
number = "x"
def raises(a: float = 1.0):
    raise RuntimeError("two\\nlines")
"""


def prepare() -> None:
    """Files that the commands are pointed at."""
    for name in ("folder.nc", "folder.png"):
        Path(name).mkdir()
    Path("file.txt").write_text("a file")
    Path("bad.json").write_text("[[1, 2], [3]]")
    Path("deep.json").write_text("[" * 100_000 + "]" * 100_000)
    Path("huge.json").write_text(f"[[{LONG}, 0], [0, 1]]")
    Path("bits.json").write_bytes(bytes(range(256)))
    Path("bad.py").write_text(MODELS)


def arguments(trial: Trial) -> list[str]:
    """A command line, one or two of whose options are hostile."""
    name = trial.choose(COMMANDS)
    base, options = COMMANDS[name]
    line = list(base)
    if name == "study run":
        Path("spec.toml").write_text(trial.choose(SPECS), "utf-8")
    for _ in range(int(trial.rng.integers(1, 3)) if options else 0):
        option = trial.choose(options)
        value = trial.choose(options[option])
        if option in line:
            line[line.index(option) + 1] = value
        else:
            line += [option, value]
    if trial.rng.random() < 0.1 and name not in UNENDING:
        line = line[: int(trial.rng.integers(len(line) + 1))]
    if trial.rng.random() < 0.1:
        line.insert(
            int(trial.rng.integers(len(line) + 1)), trial.choose(("--nothing", "-x", "", "--"))
        )
    if trial.rng.random() < 0.3:
        line.append("--json")
    return [*name.split(), *line]


class Output(io.TextIOWrapper):
    """A stream of UTF-8 in memory, as a terminal or a pipe is."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", errors="backslashreplace", write_through=True)

    def text(self) -> str:
        """What was written."""
        self.flush()
        return self.buffer.getvalue().decode()


def answer(line: list[str]) -> tuple[int | None, str, str]:
    """Exit code and both outputs of a command line in this process; no code if it is given up."""
    from dotphase.cli.main import _run

    out, err, codes = Output(), Output(), list[int]()
    with redirect_stdout(out), redirect_stderr(err):
        worker = threading.Thread(target=lambda: codes.append(_run(line)), daemon=True)
        worker.start()
        worker.join(LIMIT)
    if worker.is_alive():
        return None, out.text(), err.text()
    return codes[0] if codes else 1, out.text(), err.text()


def check(line: list[str], code: int | None, out: str, err: str) -> None:
    """What every command line promises."""
    require("Traceback" not in err + out, f"a traceback: {err[-300:]}")
    if code is None:
        raise Wrong(f"no answer after {LIMIT} s")
    require(code in (0, 2, 3), f"exit code {code}: {err[-300:]}")
    told = [row for row in err.splitlines() if row.strip()]
    if code == 2:
        require(bool(told) and told[-1].startswith("dotphase: "), f"no word of why: {err[-300:]}")
        require(len(told) <= 2, f"{len(told)} lines of error: {err[:300]}")
        require(len(told[-1]) < 1000, f"a line of {len(told[-1])} characters: {told[-1][:200]}")
    if "--json" in line and code in (0, 3) and "--help" not in line and "--list" not in line:
        json.loads(out)


def cases(trial: Trial) -> None:
    prepare()
    slowest = 0.0
    for _ in range(trial.cases):
        line = arguments(trial)
        with trial.case(line):
            began = time.monotonic()
            check(line, *answer(line))
            slowest = max(slowest, time.monotonic() - began)
    trial.notes["slowest"] = f"{slowest:.0f} s"


if __name__ == "__main__":
    run(Trial("command line", "Command lines with one or two hostile options.", 1000), cases)
