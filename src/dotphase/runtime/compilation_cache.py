"""Keep compiled functions on disk, so that later programs need not compile them again.

JAX has a persistent compilation cache, which process-wide settings enable. They are enabled while
a public function of this package runs, and restored when it returns. If the host program has
chosen a folder for JAX, or has disabled JAX's cache, its settings stay as they are.

The folder is ``dotphase/compiled`` in the user's cache (``$XDG_CACHE_HOME`` or ``~/.cache``). The
environment variable `VARIABLE` names another folder, or is ``off``; `keep_compiled` sets it in a
program. Several processes may share a folder: the name of an entry is a hash of the code that it
was compiled from. Damaged entries are deleted, and the size of the folder is limited
(`dotphase.runtime.checked_cache`).
"""

import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from dotphase.runtime.checked_cache import CheckedCache
from dotphase.runtime.jit_cache_limit import allow_clearing
from dotphase.runtime.shared_setting import SharedSetting

#: Environment variable: a folder, or `OFF`.
VARIABLE = "DOTPHASE_CACHE"
OFF = "off"
#: A disk with fewer free bytes counts as full: JAX warns at each entry that it cannot write.
MIN_FREE_BYTES = 2**24


def keep_compiled(where: str | os.PathLike[str] | bool = True, *, clear: bool = True) -> None:
    """Choose where compiled functions are kept, on disk and in memory.

    Parameters
    ----------
    where : path or bool
        A folder of your own; True for ``dotphase/compiled`` in the user's cache folder, which is
        the default; False to compile anew in every program. The environment variable
        ``DOTPHASE_CACHE`` has the same effect (a folder, or ``off``). Programs started from this
        one inherit the choice.
    clear : bool
        Whether JAX's caches of the whole process may be cleared, also those of the host program,
        when the process is about to run out of memory maps.

    Examples
    --------
    >>> dp.keep_compiled(False)
    >>> dp.keep_compiled(clear=False)
    >>> dp.keep_compiled()
    """
    allow_clearing(clear)
    if where is True:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = OFF if where is False else os.fspath(where)


def user_cache() -> Path | None:
    """Return the folder of this package in the user's cache; None for a user without a home."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "dotphase"


def cache_folder() -> Path | None:
    """Return the folder of compiled functions; None if disabled or not writable."""
    chosen, default = os.environ.get(VARIABLE), user_cache()
    if chosen == OFF or (not chosen and default is None):
        return None
    folder = Path(chosen) if chosen else default / "compiled"  # type: ignore[operator]
    if _is_writable(folder):
        return folder
    if chosen:
        _warn_once(f"{VARIABLE} = {chosen!r} cannot be written to: everything is compiled anew")
    return None


@cache
def _warn_once(message: str) -> None:
    """Warn once per process; Python forgets which warnings it showed whenever filters change."""
    warnings.warn(message, stacklevel=3)


def _is_writable(folder: Path) -> bool:
    """Return True if a folder exists, or can be made, is writable and has free space."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except (OSError, ValueError):
        return False
    return free > MIN_FREE_BYTES and os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def cache_settings() -> dict[str, Any]:
    """Return JAX settings that enable the cache; empty if the user has chosen others."""
    if _setting("jax_compilation_cache_dir") or not _setting("jax_enable_compilation_cache"):
        return {}
    folder = cache_folder()
    if folder is None:
        return {}
    return {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }


def enable_for_process() -> None:
    """Enable the cache until the process ends: for programs of this package."""
    # If entries cannot be written, everything is compiled anew; one warning each would not help.
    message = "Error (writing|reading) persistent compilation cache"
    warnings.filterwarnings("ignore", message=message)
    _enable()


def _enable() -> Callable[[], None]:
    """Enable the cache and return a function that restores the settings."""
    settings = cache_settings()
    before = {name: _setting(name) for name in settings}
    _update(settings)
    if settings:
        _check_entries()
    return partial(_restore, before, settings)


def _check_entries() -> None:
    """Let JAX read and write through a `CheckedCache`, for which it has no public setting."""
    folder = _setting("jax_compilation_cache_dir")
    internal: Any = import_module("jax._src.compilation_cache")
    if folder and hasattr(internal, "_cache") and hasattr(internal, "_initialize_cache"):
        internal._initialize_cache()
        internal._cache = CheckedCache(folder)


def _restore(before: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Restore settings, except values that the host program has changed in the meantime."""
    _update({name: before[name] for name in before if _setting(name) == settings[name]})


#: Enables the cache inside a block.
persistent_cache = SharedSetting(_enable).hold


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _update(settings: Mapping[str, Any]) -> None:
    if settings:
        for name, value in settings.items():
            jax.config.update(name, value)
        reset_cache()  # JAX opens the folder once; only a reset makes it read the setting again
