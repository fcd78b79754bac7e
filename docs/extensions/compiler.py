"""What tests and pages tell the compiler: they run what it makes once or twice, at small size."""

import gc
import os
from importlib.metadata import version

#: Options of XLA. One thread of code generation takes less time in all than several, and code that
#: is little optimized is soon made; older emitters take less than newer ones, as long as there are
#: both: an unknown option ends a program.
FLAGS = ["--xla_cpu_parallel_codegen_split_count=1", "--xla_backend_optimization_level=1"]
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")


def compile_quickly() -> None:
    """Take two thirds of the time, here and in programs that are started from here.

    To be called before JAX compiles anything; what the user has chosen stays.
    """
    # What is compiled stays, in millions of objects: looking through them often finds nothing.
    gc.set_threshold(50_000, 20, 100)
    os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
