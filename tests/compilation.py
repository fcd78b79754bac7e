"""Compile with few optimizations in tests, except for the averages of the theory.

The averages run thousands of times: those of two tokens in all tests, others in long tests only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dotphase.runtime.compiled_once import CompiledOnce
from dotphase.theory import gradient_flow

#: A setting of JAX.
QUICK = "jax_disable_most_optimizations"

_CALL = CompiledOnce.__call__


def compile_averages_well(others: bool, put: Callable[[Any, str, Any], None]) -> None:
    """Compile everything but the averages with few optimizations.

    Parameters
    ----------
    others : bool
        True if averages of other models than those of two tokens are optimized, too.
    put : callable
        Replaces an attribute, as `setattr` does.
    """
    jax.config.update(QUICK, True)

    def call(self: CompiledOnce, *args: Any) -> Any:
        is_average = len(args) > 2
        well = is_average and (others or np.shape(args[2])[-2] == 4)
        quick = self._ready or not well
        return (_CALL if quick else _well_compiled(_CALL))(self, *args)

    put(CompiledOnce, "__call__", call)
    put(gradient_flow, "_slopes", _well_compiled(gradient_flow._slopes))


def _well_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that what it compiles is optimized."""

    def call(*args: Any) -> Any:
        jax.config.update(QUICK, False)
        try:
            return function(*args)
        finally:
            jax.config.update(QUICK, True)

    return call
