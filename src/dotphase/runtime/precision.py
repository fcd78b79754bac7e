"""Precision of JAX inside the package, independent of the host program's setting.

The integrands of the theory are sums of small differences, so single precision does not suffice.
JAX's switch for float64 is a setting of the thread. Each public function therefore runs in a
context of its own, which also enables the persistent cache of compiled functions
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

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def use_precision(dtype: DTypeLike) -> Iterator[None]:
    """Compute in float32 or float64 inside the block, with the persistent cache enabled."""
    clear_if_near_limit()
    with persistent_cache(), jax.enable_x64(np.dtype(dtype) == np.float64):
        yield


def in_double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to run with JAX in float64; the caller's settings return afterwards."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with use_precision(np.float64):
            return function(*args, **kwargs)

    return wrapped
