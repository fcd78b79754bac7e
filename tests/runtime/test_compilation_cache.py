"""Compiled code is kept for later programs, and JAX is left as it was."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import jax
import pytest

from dotphase.runtime import compilation_cache
from dotphase.runtime.checked_cache import CheckedCache

PROGRAM = """
import os
import jax, jax.numpy as jnp
from jax import monitoring
from dotphase.runtime.precision import in_double_precision
hits, misses = [], []
monitoring.register_event_listener(
    lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")

def count():
    before = len(hits)
    settings = [getattr(jax.config, name) for name in names]
    found = in_double_precision(lambda: float(jax.jit(lambda x: jnp.sin(x) + 2)(jnp.ones(3))[0]))()
    assert settings == [getattr(jax.config, name) for name in names]
    inside = len(hits)
    jax.jit(lambda x: jnp.cos(x) * 3)(jnp.ones(4))
    assert len(hits) == inside
    print(found, inside - before)

{calls}
"""


def _start(calls="count()", **environment):
    known = {
        name: value for name, value in os.environ.items() if name != compilation_cache.VARIABLE
    }
    known["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(calls=calls)],
        env={**known, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _hits(process):
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert not errors
    values, hits = zip(*(line.split() for line in out.splitlines()), strict=True)
    assert all(value.startswith("2.84") for value in values)
    return sum(map(int, hits))


class Disk(NamedTuple):
    """What there is to know of a disk here."""

    free: int


def _entries(folder):
    return sorted(folder.glob("*-cache"))


def test_the_next_program_reads_what_this_one_has_compiled(tmp_path):
    folder = tmp_path / "dotphase" / "compiled"
    assert _hits(_start(XDG_CACHE_HOME=str(tmp_path))) == 0
    intact = {entry: entry.read_bytes() for entry in _entries(folder)}
    assert intact
    assert _hits(_start(XDG_CACHE_HOME=str(tmp_path))) > 0
    assert _entries(folder) == list(intact)  # what the program itself compiles is its own affair
    # Damaged entries are replaced and reported once.
    first, second, *others = intact
    first.write_bytes(intact[first][:-7])
    second.write_bytes(intact[first])
    for entry in others:
        entry.write_bytes(b"")
    process = _start(XDG_CACHE_HOME=str(tmp_path))
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0 and out.startswith("2.84")
    message = f"damaged compiled functions in {folder} are deleted and compiled again"
    assert errors.splitlines() == [message]
    assert [len(entry.read_bytes()) for entry in intact] == [*map(len, intact.values())]
    assert _hits(_start(XDG_CACHE_HOME=str(tmp_path))) > 0


def test_it_is_switched_off_moved_and_left_to_the_user(tmp_path):
    default, moved, theirs = tmp_path / "default", tmp_path / "moved", tmp_path / "theirs"
    (tmp_path / "file").write_text("")
    calls = f"""
count()
assert not os.path.exists({str(default)!r})
os.environ.update(DOTPHASE_CACHE="", XDG_CACHE_HOME={str(tmp_path / "file")!r})
count()
os.environ.update(DOTPHASE_CACHE={str(moved)!r}, XDG_CACHE_HOME={str(default)!r})
count()
os.environ.update(DOTPHASE_CACHE="")
jax.config.update("jax_compilation_cache_dir", {str(theirs)!r})
count()
"""
    assert _hits(_start(calls, DOTPHASE_CACHE="off", XDG_CACHE_HOME=str(default))) == 0
    assert not default.exists()
    assert _entries(moved)


def test_no_home_is_no_error(monkeypatch, tmp_path):
    monkeypatch.delenv(compilation_cache.VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def nobody():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    assert compilation_cache.cache_folder() is None and compilation_cache.user_cache() is None
    compilation_cache.keep_compiled(tmp_path)
    assert compilation_cache.cache_folder() == tmp_path
    compilation_cache.keep_compiled(False)
    assert compilation_cache.cache_folder() is None


def test_a_folder_that_cannot_be_written_to_is_told_in_one_line(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv(compilation_cache.VARIABLE, str(file))
    with pytest.warns(UserWarning, match=r"DOTPHASE_CACHE = .*file' cannot be written to") as told:
        assert compilation_cache.cache_folder() is None
    assert len(told) == 1 and "\n" not in str(told[0].message)
    monkeypatch.setenv(compilation_cache.VARIABLE, str(tmp_path))
    assert compilation_cache.cache_folder() == tmp_path
    monkeypatch.setattr(compilation_cache.shutil, "disk_usage", lambda place: Disk(free=2**20))
    with pytest.warns(UserWarning, match="cannot be written to"):
        assert compilation_cache.cache_folder() is None  # as good as full


@pytest.mark.parametrize("threads", [1, 4])
def test_settings_come_back_when_the_last_call_returns(monkeypatch, tmp_path, threads):
    settings = {"jax_compilation_cache_dir": str(tmp_path)}
    monkeypatch.setattr(compilation_cache, "cache_settings", lambda: settings)
    before = jax.config.jax_compilation_cache_dir
    assert before != str(tmp_path)

    def call(number):
        with compilation_cache.persistent_cache(), compilation_cache.persistent_cache():
            assert jax.config.jax_compilation_cache_dir == str(tmp_path)
            if number % 3 == 0:
                raise ArithmeticError

    with ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(call, number) for number in range(20)]
    assert sum(isinstance(call.exception(), ArithmeticError) for call in calls) == 7
    assert jax.config.jax_compilation_cache_dir == before


def test_a_folder_that_the_host_chooses_during_a_call_stays(monkeypatch, tmp_path):
    settings = {"jax_compilation_cache_dir": str(tmp_path / "ours")}
    monkeypatch.setattr(compilation_cache, "cache_settings", lambda: settings)
    before, theirs = jax.config.jax_compilation_cache_dir, str(tmp_path / "theirs")
    try:
        with compilation_cache.persistent_cache():
            jax.config.update("jax_compilation_cache_dir", theirs)
        assert jax.config.jax_compilation_cache_dir == theirs
    finally:
        compilation_cache._update({"jax_compilation_cache_dir": before})


def test_the_folder_does_not_grow_without_bound(tmp_path):
    cache = CheckedCache(tmp_path, max_bytes=1000)
    for number in range(5):
        entry = tmp_path / f"{number}-checked-cache"
        cache.put(str(number), bytes(300))
        os.utime(entry, (number, number))
    assert cache.get("0") == bytes(300)  # used again
    CheckedCache(tmp_path, max_bytes=1000).put("new", bytes(300))
    assert {entry.name[0] for entry in _entries(tmp_path)} == {"0", "4", "n"}


def test_a_full_disk_is_no_error(tmp_path):
    cache = CheckedCache(tmp_path / "missing")
    cache.put("key", b"data")
    assert cache.get("key") is None
