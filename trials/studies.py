"""Studies in odd folders, grown and merged, forged journals, models that exit, few resources."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import xarray as xr
from common import Trial, environment, folder, require, run

import dotphase as dp
from dotphase.storage.journal import DATABASE, _with_checksum

ALPHAS = [0.2, 0.5, 0.9, 1.4, 2.0, 3.0]
PIECES = (
    " ", "%20", "%2f", "%00", "%", "#", "?", "&", "=", ":", "'", '"', "\\", "\n", "\t", "*", "[a]",
    "~", "-", "--", "..", "é", "図", "\u202e", "x", "y", "file:", ":memory:", "?mode=rwc", "$HOME",
)  # fmt: skip
ENDLESS = """CREATE VIEW points AS
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
SELECT i, 'done', '', '', 1, 1, '' FROM n"""
#: The command line with limits of resources, as the first argument.
LIMITED = """import json, resource, signal, sys
for name, value in json.loads(sys.argv[1]):
    resource.setrlimit(name, (value, value))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from dotphase.cli.main import main
main(sys.argv[2:])"""
#: Seconds that one program may take.
LIMIT = 240
MODEL = """
import os, sys, time
import dotphase as dp
{top}
def model(ridge: float = 0.01):
    {inside}
    return dp.positional_semantic(ridge=ridge)
"""
ACTS = (
    "sys.exit(3)", "sys.exit('bye')", "os._exit(7)", "print('noise')", "os.write(1, b'noise')",
    "os.close(1)", "os.kill(os.getpid(), 9)", "raise KeyError('x')", "raise SystemExit", "1 / 0",
    "sys.stdout.close()", "sys.setrecursionlimit(50)", "os.chdir('/')", "sys.path.clear()",
    "import uuid", "import json, socket, types", "sys.exit(None)", "raise RecursionError",
)  # fmt: skip
SHADOWS = ("uuid", "types", "json", "socket", "random", "numpy", "jax", "queue", "pickle")


def study(alphas: list[float], seeds: list[int]) -> dp.Study:
    return dp.Study("regression", sweep={"alpha": alphas}, seeds=seeds)


def computed(alphas: list[float], seeds: list[int], path: Path) -> xr.Dataset:
    return dp.run_study(study(alphas, seeds), path, engine="serial")


def refuses(action: Callable[[], Any]) -> bool:
    """True if an action ends with one line; what else is raised fails the case."""
    try:
        action()
    except dp.InvalidInput as error:
        require("\n" not in str(error).strip(), "more than one line")
        return True
    return False


def odd_folder(trial: Trial) -> None:
    """A folder with an odd name, beside those that its name could be taken for."""
    name = "".join(trial.choose(PIECES) for _ in range(int(trial.rng.integers(1, 6))))
    names = {name, unquote(name), quote(name), name.strip(), name.split("?")[0]}
    valid = [n for n in names if n.strip(". ") and "/" not in n and "\0" not in n]
    with trial.case(name), folder() as here:
        expected = {n: computed([0.5 + k], [k], here / n) for k, n in enumerate(sorted(valid))}
        for n, dataset in expected.items():
            require(dp.read_study(here / n).identical(dataset), "another journal is read")
            require(dp.read_status(here / n).done == 1, "another status")


def growth(trial: Trial) -> None:
    """A study that grows, or is merged from parts, has the numbers of the whole."""
    part = sorted(trial.rng.choice(ALPHAS, int(trial.rng.integers(1, 5)), replace=False).tolist())
    rest = [alpha for alpha in ALPHAS if alpha not in part]
    grown = trial.rng.permutation(ALPHAS).tolist()
    with trial.case((part, grown)), folder() as here:
        first = computed(part, [0, 2], here / "grown")
        whole = computed(grown, [1, 0, 2], here / "grown")
        afresh = computed(grown, [1, 0, 2], here / "afresh")
        require(whole.drop_attrs().identical(afresh.drop_attrs()), "other numbers after growth")
        sure = whole.sel(alpha=part, seed=[0, 2]).drop_attrs()
        require(sure.equals(first.drop_attrs()), "a point has changed")
        for number, (alphas, seeds) in enumerate(((rest, [0, 1, 2]), (part, [1]), (part, [0, 2]))):
            computed(alphas, seeds, here / str(number))
        merged = dp.analysis.merge_studies(here / "merged", *(here / n for n in "012"))
        same = merged.sel(alpha=grown, seed=[1, 0, 2]).drop_attrs()
        require(same.equals(afresh.drop_attrs()), "other numbers after a merge")
        require(refuses(lambda: computed(part, [0], here / "grown")), "points were given up")


def forged(trial: Trial) -> None:
    """Rows with right checksums and wrong contents, and views without end."""
    values = trial.choose(({}, [], {"V": 1}, {"V": "x"}, None, 3, {"V": [1]}, {"V": 1e400}))
    row = (trial.choose((0, -1, 999, 2**62)), trial.choose(("done", "failed", "running")),
           trial.choose((json.dumps(values), "[" * 10**5, "nan", "", None)),
           trial.choose((None, "why", 7)), trial.choose((0.1, None, "soon", 1e308, -1.0)),
           trial.choose((1.0, 1e12, None, "now")))  # fmt: skip
    kind = trial.choose(("row", "row", "about", "runs", "view"))
    with trial.case((kind, row)), folder() as here:
        computed([1.0], [0, 1], here / "s")
        with closing(sqlite3.connect(here / "s" / DATABASE)) as database, database:
            if kind == "view":
                database.execute("DROP TABLE points")
                database.execute(ENDLESS)
            elif kind == "row":
                insert(database, "points", row)
            elif kind == "runs":
                insert(database, "runs", (trial.choose((1.0, "now", 1e308)), str(row[3])))
            else:
                name = trial.choose(("asked", "provenance"))
                insert(database, "about", (name, row[2] or "{}"))
        began = time.monotonic()
        for action in (dp.read_status, dp.read_study, lambda s: computed([1.0], [0, 1], s)):
            refuses(lambda action=action: action(here / "s"))
        require(time.monotonic() - began < 60, "more than a minute")


def insert(database: sqlite3.Connection, table: str, values: tuple[Any, ...]) -> None:
    row = _with_checksum(*values)
    marks = ", ".join("?" * len(row))
    database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)


def started(arguments: list[str], cache: Path, limits: dict[int, int] | None = None) -> Any:
    """Run a program of this checkout with limits of its resources."""
    chosen = json.dumps(list((limits or {}).items()))
    return subprocess.run(
        [sys.executable, "-c", LIMITED, chosen, *arguments],
        # A limit on files would cut the byte code of this package, which Python does not repair.
        env=environment(cache) | {"PYTHONDONTWRITEBYTECODE": "1"},
        timeout=LIMIT, capture_output=True, text=True, errors="replace",
    )  # fmt: skip


def honest(result: Any) -> None:
    """Fail the case if a program ended with a traceback or an unforeseen error."""
    require(
        result.returncode in (0, 2, 3), f"exit code {result.returncode}: {result.stderr[-300:]}"
    )
    require("Traceback" not in result.stderr, result.stderr[-600:])


def odd_model(trial: Trial, cache: Path) -> None:
    """A model that exits, prints or dies, in a folder whose files have the names of modules."""
    top, inside = (trial.choose((act, "pass", "pass")) for act in trial.rng.choice(ACTS, 2))
    shadow = trial.choose(SHADOWS)
    with trial.case((top, inside, shadow)), folder() as here:
        (here / "model.py").write_text(MODEL.format(top=top, inside=inside))
        (here / f"{shadow}.py").write_text("raise SystemExit('a shadow')")
        (here / "s.toml").write_text('task = "train"\nmodel = "model.py:model"\n[fixed]\n'
                                     "alpha = 1.0\nd = 20\nsteps = 2\n")  # fmt: skip
        arguments = ["study", "run", "s.toml", "--out", "s", "--workers", "1", "--json"]
        program = "import sys; from dotphase.cli.main import main; main(sys.argv[1:])"
        result = subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments], env=environment(cache),
            timeout=LIMIT, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        if not (result.returncode < 0 or result.returncode == 7):  # killed or ended by the file
            honest(result)
            if result.returncode != 2:
                require("done" in json.loads(result.stdout), "no JSON")


def few_resources(trial: Trial, cache: Path) -> None:
    """Few descriptors, little memory, short files: an answer, or one line."""
    name, values = trial.choose((
        (resource.RLIMIT_NOFILE, (8, 12, 16, 24, 40, 64)),
        (resource.RLIMIT_AS, (2**29, 2**30, 2**31, 2**33)),
        (resource.RLIMIT_FSIZE, (0, 1000, 20_000, 10**6)),
    ))  # fmt: skip
    value = int(trial.choose(values))
    with trial.case((name, value)), folder() as here:
        (here / "s.toml").write_text('task = "regression"\n[sweep]\nalpha = [0.5, 1.0]\n')
        arguments = ["study", "run", "s.toml", "--out", "s", "--engine", "serial"]
        result = started(arguments, cache, {name: value})
        # Python and its libraries end by themselves where they cannot be loaded.
        loaded = "import" not in result.stderr and result.returncode >= 0
        if loaded and name != resource.RLIMIT_AS:
            honest(result)
        if result.returncode == 0:
            finished = dp.read_study(here / "s")
            require(bool(finished["done"].all()), "exit code 0 with missing points")


def damaged_cache(trial: Trial, cache: Path) -> None:
    """Entries of the compilation cache that are cut, emptied or exchanged."""
    entries = sorted(cache.glob("*-cache"))
    intact = [entry.read_bytes() for entry in entries]
    for entry in entries:
        data = entry.read_bytes()
        cut = data[: int(trial.rng.integers(len(data) + 1))]
        entry.write_bytes(trial.choose((cut, b"", trial.choose(intact), data[::-1])))
    with trial.case("damaged cache"), folder() as here:
        (here / "s.toml").write_text('task = "regression"\n[sweep]\nalpha = [0.5]\n')
        result = started(["study", "run", "s.toml", "--out", "s", "--engine", "serial"], cache)
        honest(result)
        require(result.returncode == 0, result.stderr)
        expected = computed([0.5], [0], here / "expected")
        found = dp.read_study(here / "s")
        require(bool(np.allclose(found["V"], expected["V"], rtol=1e-12)), "other numbers")


def cases(trial: Trial) -> None:
    cache = Path("cache").absolute()
    cache.mkdir()
    few_resources(trial, cache)  # fills the cache
    slow = [odd_model, few_resources, damaged_cache]
    while trial.tried < trial.cases:
        if trial.tried % 6 == 0:
            slow[trial.tried // 6 % len(slow)](trial, cache)
        else:
            trial.choose((odd_folder, growth, forged))(trial)


if __name__ == "__main__":
    about = "Odd folders, grown studies, forged journals, models that exit, few resources."
    run(Trial("studies", about, 120), cases)
