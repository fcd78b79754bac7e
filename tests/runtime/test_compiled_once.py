"""Functions that only one thread compiles."""

import threading

import jax
import numpy as np

from dotphase.runtime.compiled_once import CompiledOnce


def test_threads_that_call_at_once_compile_once():
    traced, results = [], []

    def function(x):
        traced.append(threading.get_ident())
        return x @ x.T

    compiled, together = CompiledOnce(function), threading.Barrier(4)

    def call():
        together.wait(60)
        results.append(np.asarray(compiled(np.eye(3, dtype=np.float32))))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4 and all((result == np.eye(3)).all() for result in results)
    assert len(traced) == 1 and compiled._function._cache_size() == 1


def test_a_function_is_compiled_ahead_for_double_precision():
    ready, dtypes = threading.Event(), []

    def function(x):
        dtypes.append(x.dtype)
        jax.debug.callback(lambda: ready.set())
        return x + 1

    compiled = CompiledOnce(function)
    assert compiled.untouched
    compiled.prepare(np.ones(2))
    assert not compiled.untouched and ready.wait(60)
    with jax.enable_x64(True):
        assert compiled(np.ones(2)).tolist() == [2.0, 2.0]
    assert dtypes == [np.float64]
