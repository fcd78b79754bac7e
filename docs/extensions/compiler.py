"""Options of the compiler for tests and pages, which run compiled code a few times."""

import gc
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dotphase.runtime.compilation_cache import VARIABLE
from dotphase.runtime.compiled_once import CompiledOnce
from dotphase.theory import gradient_flow

#: Options of XLA. One thread of code generation takes less CPU time than several, and a low level
#: of optimization compiles faster. The older emitters compile faster than the newer ones; the
#: option exists only while JAX has both, and an unknown option ends the program.
FLAGS = ["--xla_cpu_parallel_codegen_split_count=1", "--xla_backend_optimization_level=1"]
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")


def compile_quickly() -> None:
    """Reduce the time of tests and pages to two thirds, in this program and its subprocesses.

    Call it before JAX compiles anything. Options in the environment take precedence.
    """
    # Compiled functions have millions of objects that stay alive, so that frequent garbage
    # collections would only cost time.
    gc.set_threshold(50_000, 20, 100)
    os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
    # Tests, pages, the programs that they start, and later runs share compiled functions.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault(VARIABLE, str(cache / "dotphase" / "tests"))


#: A setting of JAX.
QUICK = "jax_disable_most_optimizations"

_CALL = CompiledOnce.__call__


def compile_averages_well(others: bool, put: Callable[[Any, str, Any], None]) -> None:
    """Compile everything but the averages of the theory with few optimizations.

    The averages run thousands of times: those of two tokens always, others in long tests only.

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
