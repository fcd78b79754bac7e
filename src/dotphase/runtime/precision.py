"""What holds inside the package, without touching the settings of the host program.

The integrands of the theory are sums of small differences, so single precision is not
enough. JAX decides its default precision by a global switch; turning it when the package
is imported would change every other JAX program in the process. Each public function
therefore runs inside a context of its own, in which compiled code is kept as well
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

from dotphase.runtime.compilation_cache import kept
from dotphase.runtime.jit_cache_limit import clear_if_near_limit

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def use_precision(kind: DTypeLike) -> Iterator[None]:
    """In float32 or float64, with compiled code kept; the caller's settings come back after."""
    clear_if_near_limit()
    with kept(), jax.enable_x64(np.dtype(kind) == np.float64):
        yield


def in_double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with JAX in float64, and leave the caller's settings as they were."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with use_precision(np.float64):
            return function(*args, **kwargs)

    return wrapped
