"""Options of the compiler for tests and pages, which run compiled code a few times."""

import gc
import os
from importlib.metadata import version

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
