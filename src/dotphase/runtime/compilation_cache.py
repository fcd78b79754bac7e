"""Compiled code that lasts: functions compiled in one process are read from disk by the next.

JAX keeps compiled functions in a folder if it is told to, by global settings. A library must not
turn those for the whole program, so they hold while a function of this package runs, and are put
back when it returns. Where the user has chosen a folder for JAX, or has switched its cache off,
nothing is touched at all.

The folder is ``dotphase/compiled`` in the user's cache (``$XDG_CACHE_HOME`` or ``~/.cache``). The
environment variable `VARIABLE` names another one, or is ``off``; `keep_compiled` does the same in a
program. Several processes may use one folder: an entry is found by the code that it was made from,
and one that cannot be read is compiled again.
"""

from __future__ import annotations

import os
import shutil
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

#: Environment variable: a folder, or `OFF`.
VARIABLE = "DOTPHASE_CACHE"
OFF = "off"
#: Free bytes below which a disk is full: what JAX cannot write down it complains of, each time.
ROOM = 2**24


def keep_compiled(where: str | os.PathLike[str] | bool = True) -> None:
    """Say where compiled code is kept between programs, or that it is not.

    Parameters
    ----------
    where : path or bool
        A folder of your own; True for ``dotphase/compiled`` in the user's cache folder, which is
        the default; False to compile anew in every program. The environment variable
        ``DOTPHASE_CACHE`` does the same (a folder, or ``off``), and so does this for programs that
        are started from here.

    Examples
    --------
    >>> dp.keep_compiled(False)
    >>> dp.keep_compiled()
    """
    if where is True:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = OFF if where is False else os.fspath(where)


def user_cache() -> Path | None:
    """The folder of this package in the user's cache; None for a user without a home."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "dotphase"


def folder() -> Path | None:
    """Where compiled functions are kept; None if nowhere, or if it cannot be written to."""
    chosen, ours = os.environ.get(VARIABLE), user_cache()
    if chosen == OFF or (not chosen and ours is None):
        return None
    found = Path(chosen) if chosen else ours / "compiled"  # type: ignore[operator]
    if _writable(found):
        return found
    if chosen:
        _tell(f"{VARIABLE} = {chosen!r} cannot be written to: everything is compiled anew")
    return None


@cache
def _tell(what: str) -> None:
    """Warn of something once; Python's own record of that is lost whenever filters change."""
    warnings.warn(what, stacklevel=3)


def _writable(place: Path) -> bool:
    """Whether a folder is there, or can be made, that may be written to and is not full."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(place).free
    except (OSError, ValueError):
        return False
    return free > ROOM and os.access(place, os.R_OK | os.W_OK | os.X_OK)


def cache_settings() -> dict[str, Any]:
    """Settings of JAX that keep compiled functions; none where they are not ours to choose."""
    if _now("jax_compilation_cache_dir") or not _now("jax_enable_compilation_cache"):
        return {}
    found = folder()
    if found is None:
        return {}
    return {
        "jax_compilation_cache_dir": str(found),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }


def enable_for_process() -> None:
    """Keep all that is compiled from now on: for a process that is a program of this package."""
    # Where nothing can be kept, everything is compiled anew; nobody has to be told each time.
    about = "Error (writing|reading) persistent compilation cache"
    warnings.filterwarnings("ignore", message=about)
    _apply(cache_settings())


class _Calls:
    """How many calls are running, and the settings to go back to when there are none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.before: dict[str, Any] = {}


_calls = _Calls()


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is compiled inside."""
    with _calls.lock:
        if _calls.running == 0:
            chosen = cache_settings()
            _calls.before = {name: _now(name) for name in chosen}
            _apply(chosen)
        _calls.running += 1
    try:
        yield
    finally:
        with _calls.lock:
            _calls.running -= 1
            if _calls.running == 0 and _calls.before:
                _apply(_calls.before)
                _calls.before = {}


def _now(setting: str) -> Any:
    return getattr(jax.config, setting)


def _apply(settings: Mapping[str, Any]) -> None:
    if settings:
        for name, value in settings.items():
            jax.config.update(name, value)
        reset_cache()  # or JAX would go on with the folder that it has begun with
