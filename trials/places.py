"""A small tmpfs that fills up, folders of another user, and the sdist installed without git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from common import ROOT, Trial, environment, folder, require, run

import dotphase as dp

#: Seconds that one program may take.
LIMIT = 300
#: Without the capabilities of root, who else may read and write everything.
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
SPEC = 'task = "regression"\n[sweep]\nalpha = [0.5, 1.0]\n'
#: A short computation with the installed package.
USE = """
import dotphase as dp, numpy as np
print(dp.__file__)
print(dp.solve(dp.positional_semantic(), 2.0, log2_points=12).converged)
dp.plot.curve(dp.curve(dp.positional_semantic(), [2.0], ["semantic"], log2_points=12), "c.png")
dp.histogram.shipped("semantic")
"""


@contextmanager
def tmpfs(size: int) -> Iterator[Path]:
    """A file system in memory with a number of KiB, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="dotphase-tmpfs-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(place)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()


def grid(size: int) -> dp.Study:
    return dp.Study("regression", sweep={"alpha": np.linspace(0.3, 2.5, size).tolist()})


def full_tmpfs(trial: Trial) -> None:
    """A study on a file system that fills up: one line, and nothing is lost once there is space."""
    size, filler = int(trial.rng.integers(4, 160)), int(trial.rng.integers(0, 100))
    work = grid(int(trial.choose((2, 12))))
    with trial.case(("tmpfs", size, filler, work.size)), folder() as here, tmpfs(size) as small:
        with suppress(OSError):
            (small / "filler").write_bytes(bytes(filler * 1024))
        expected = dp.run_study(work, here / "expected", engine="serial")
        try:
            dataset = dp.run_study(work, small / "s", engine="serial")
            dataset.to_netcdf(here / "copy.nc")
        except dp.InvalidInput as error:
            require("\n" not in str(error), "more than one line")
            with suppress(dp.InvalidInput):
                dp.read_status(small / "s")
        # Nothing damaged is left: with more space the study goes on, or begins.
        more = ["mount", "-o", "remount,size=64m", str(small)]
        subprocess.run(more, check=True, capture_output=True)
        again = dp.run_study(work, small / "s", engine="serial")
        require(again.drop_attrs().identical(expected.drop_attrs()), "other numbers")
        files = [path.name for path in (small / "s").iterdir() if path.name.startswith(".")]
        require(not files, f"left behind: {files}")


def full_files(trial: Trial) -> None:
    """Results and figures on a file system that is full: the old file stays, nothing else."""
    size = int(trial.rng.integers(4, 24))
    name = str(trial.choose(("a.nc", "a.png", "a.svg", "a.pdf")))
    with trial.case(("file on tmpfs", size, name)), tmpfs(size) as small:
        target = small / name
        target.write_bytes(b"old")
        dataset = dp.curve(dp.positional_semantic(), [2.0], ["semantic"], log2_points=12)
        try:
            if name == "a.nc":
                dp.solve(dp.positional_semantic(), 2.0, log2_points=12).save(target)
                dp.load(target)
            else:
                dp.plot.curve(dataset, target)
                require(target.stat().st_size > 1000, "an empty figure")
        except (dp.InvalidInput, OSError) as error:
            require("\n" not in str(error), "more than one line")
            require(target.read_bytes() == b"old", "the old file is gone")
        require([path.name for path in small.iterdir()] == [name], "left behind")


def full_scratch(trial: Trial, kind: str) -> None:
    """A full cache or a full folder for temporary files does not stop a study."""
    with trial.case(("full", kind)), folder() as here, tmpfs(16) as small:
        with suppress(OSError):
            (small / "filler").write_bytes(bytes(16 * 1024))
        (here / "s.toml").write_text(SPEC)
        done = study(environment(here / "cache") | {kind: str(small)})
        require(done.returncode in (0, 2), f"exit {done.returncode}: {done.stderr[-300:]}")
        require("Traceback" not in done.stderr, done.stderr[-500:])
        require(done.returncode == 0 or kind == "TMPDIR", done.stderr[-300:])


def study(variables: dict[str, str], *before: str) -> subprocess.CompletedProcess[str]:
    command = ["study", "run", "s.toml", "--out", "s", "--workers", "1"]
    return subprocess.run(
        [*before, sys.executable, "-m", "dotphase", *command], env=variables,
        capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip


def another_user(trial: Trial, kind: str) -> None:
    """A folder, a journal or a cache of another user: one line, or an answer; nothing changes."""
    with trial.case(("another user", kind)), folder() as here:
        (here / "s.toml").write_text(SPEC)
        cache = here / "cache"
        cache.mkdir()
        if kind == "unfinished journal":
            dp.run_study(dp.Study("regression", sweep={"alpha": [0.5]}), here / "s")
        elif kind == "finished journal":
            dp.run_study(here / "s.toml", here / "s")
        owned = {"folder": here, "cache": cache}.get(kind, here / "s")
        for path in [owned, *owned.glob("*")] if owned.exists() else []:
            os.chown(path, 65534, 65534)
        before = contents(here / "s")
        done = study(environment(cache), *WITHOUT_CAPABILITIES)
        require("Traceback" not in done.stderr, done.stderr[-500:])
        lines = [line for line in done.stderr.splitlines() if line.startswith("dotphase: ")]
        if kind == "cache":
            require(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]}")
        elif done.returncode != 0 or kind != "finished journal":
            require(done.returncode == 2, f"exit {done.returncode}: {done.stderr[-300:]}")
            require(len(lines) == 1, f"said: {done.stderr[-500:]}")
        require(contents(here / "s") == before or kind == "cache", "files of others have changed")


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.glob("*")}


def sdist(trial: Trial) -> None:
    """The sdist is built and installed without git and has all files of the package."""
    with trial.case("sdist"), folder() as here:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
        )
        tree = here / "tree"
        for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
        uv = str(Path(sys.executable).parent / "uv")
        variables = environment(here / "cache") | {"PATH": str(Path(sys.executable).parent)}
        variables.pop("PYTHONPATH")

        def call(*command: str) -> str:
            done = subprocess.run(
                command, env=variables, capture_output=True, text=True, timeout=LIMIT
            )
            require(done.returncode == 0, (done.stdout + done.stderr)[-600:])
            return done.stdout

        call(uv, "build", "--sdist", "--out-dir", "dist", str(tree))
        (archive,) = (here / "dist").glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            names = {name.partition("/")[2] for name in packed.getnames()}
        call(uv, "pip", "install", "--no-deps", "--target", "target", str(archive))
        used = [name for name in listed.stdout.splitlines() if name.startswith("src/dotphase/")]
        missing = [name for name in used if name not in names]
        missing += [name for name in used if not (here / "target" / name[4:]).exists()]
        require(not missing, f"not in the sdist or not installed: {missing}")
        variables["PYTHONPATH"] = str(here / "target")
        place, *answers = call(sys.executable, "-c", USE).split()
        require(Path(place).is_relative_to(here / "target"), f"used {place}")
        require(answers == ["True"] and Path("c.png").exists(), f"answers: {answers}")


def cases(trial: Trial) -> None:
    first = [lambda kind=kind: another_user(trial, kind)
             for kind in ("folder", "cache", "unfinished journal", "finished journal")]  # fmt: skip
    first += [lambda kind=kind: full_scratch(trial, kind) for kind in ("DOTPHASE_CACHE", "TMPDIR")]
    first += [lambda: sdist(trial)]
    for case in first[: trial.cases]:
        case()
    while trial.tried < trial.cases:
        trial.choose((full_tmpfs, full_files))(trial)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("this trial mounts file systems: it needs root")
    about = "A tmpfs that fills up, folders of another user, the sdist without git."
    run(Trial("places", about, 60), cases)
