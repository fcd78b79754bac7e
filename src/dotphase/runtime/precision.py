"""Settings of JAX and NumPy inside the package, independent of those of the host program.

The integrands of the theory are sums of small differences, so single precision does not suffice.
Random numbers depend on the implementation of the keys. Both, and the checks that JAX and NumPy
offer, are settings of the thread. Each public function therefore runs in a context of its own,
which also enables the persistent cache of compiled functions
(`dotphase.runtime.compilation_cache`).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from numpy.typing import DTypeLike

from dotphase.errors import InvalidInput
from dotphase.runtime.compilation_cache import persistent_cache
from dotphase.runtime.jit_cache_limit import clear_if_near_limit
from dotphase.runtime.prng import PRNG

P = ParamSpec("P")
R = TypeVar("R")

_in_use, _forked = threading.Event(), threading.Event()


def _after_fork() -> None:
    if _in_use.is_set():
        _forked.set()


os.register_at_fork(after_in_child=_after_fork)


def _refuse_forks() -> None:
    """Refuse to compute in a fork of a process with JAX's threads, where JAX would wait forever."""
    if _forked.is_set():
        rule = "must not be a fork of a process that has computed; start it with the method 'spawn'"
        raise InvalidInput("process", os.getpid(), rule)
    _in_use.set()


@contextmanager
def fixed_settings(x64: bool) -> Iterator[None]:
    """Fix the settings of this thread that change numbers or turn valid operations into errors."""
    with (
        jax.enable_x64(x64),
        jax.default_prng_impl(PRNG),
        jax.threefry_partitionable(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.transfer_guard("allow"),
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.disable_jit(False),
        np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
    ):
        yield


@contextmanager
def use_precision(dtype: DTypeLike) -> Iterator[None]:
    """Compute in float32 or float64 with fixed settings, and enable the persistent cache."""
    _refuse_forks()
    clear_if_near_limit()
    with persistent_cache(), fixed_settings(np.dtype(dtype) == np.float64):
        yield


def in_double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to run in float64; the caller's settings return afterwards."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with use_precision(np.float64):
            return function(*args, **kwargs)

    return wrapped
