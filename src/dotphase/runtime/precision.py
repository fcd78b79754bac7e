"""Settings of JAX and NumPy inside the package, independent of those of the host program.

The integrands of the theory are sums of small differences, so single precision does not suffice.
Random numbers depend on the implementation of the keys. Both, and the checks that JAX and NumPy
offer, are settings of the thread. Each public function therefore runs in a context of its own,
which also enables the persistent cache of compiled functions
(`dotphase.runtime.compilation_cache`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from numpy.typing import DTypeLike

from dotphase.runtime.compilation_cache import persistent_cache
from dotphase.runtime.jit_cache_limit import clear_if_near_limit
from dotphase.runtime.prng import PRNG

P = ParamSpec("P")
R = TypeVar("R")


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
