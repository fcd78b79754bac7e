"""How tests compile: for small sizes and a few runs, but for averages of the theory.

Those run thousands of times: of two tokens everywhere, of others where that is worth it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dotphase.theory import expectations, gradient_flow

#: A setting of JAX.
QUICK = "jax_disable_most_optimizations"

_CALL = expectations.CompiledOnce.__call__


def compile_averages_well(others: bool, put: Callable[[Any, str, Any], None]) -> None:
    """Compile everything quickly but averages, `others` than those of two tokens too.

    What that takes is `put` in its place, as by `setattr`.
    """
    jax.config.update(QUICK, True)

    def call(self: expectations.CompiledOnce, *args: Any) -> Any:
        dims = np.shape(args[2])[-2]
        quick = self._ready or not (others or dims == 4)
        return (_CALL if quick else _well_compiled(_CALL))(self, *args)

    put(expectations.CompiledOnce, "__call__", call)
    put(gradient_flow, "_slopes", _well_compiled(gradient_flow._slopes))


def _well_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes its time to compile what it calls."""

    def call(*args: Any) -> Any:
        jax.config.update(QUICK, False)
        try:
            return function(*args)
        finally:
            jax.config.update(QUICK, True)

    return call
