"""The package changes nothing in the host program: not at import, and not after a call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import jax
import matplotlib
import numpy as np
import pytest

import dotphase as dp
from dotphase.plot.style import house_style
from dotphase.runtime import compilation_cache
from dotphase.runtime.precision import in_double_precision

PROGRAM = """
import logging, os, pkgutil, signal, sys, threading, warnings
from importlib import import_module
import equinox, jax, matplotlib, matplotlib.pyplot, numpy as np, optax, xarray
import scipy.optimize, scipy.sparse.linalg, scipy.special
from jax._src import monitoring
try:
    import distributed
except ImportError:
    pass

def state():
    listeners = (monitoring.get_event_listeners(), monitoring.get_event_duration_listeners())
    return {
        "jax.config": dict(jax.config.values),
        "listeners": [[id(listener) for listener in group] for group in listeners],
        "errstate": np.geterr(),
        "print": np.get_printoptions(),
        "rcParams": {k: str(v) for k, v in dict.items(matplotlib.rcParams)},
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "hooks": (sys.excepthook, threading.excepthook, sys.stdout, sys.stderr, sys.path[:]),
        "logging": (logging.root.level, logging.root.handlers[:]),
        "random": (np.random.get_state()[1].tolist(), threading.active_count(), os.getcwd()),
    }

before = state()
import dotphase
names = [module.name for module in pkgutil.walk_packages(dotphase.__path__, "dotphase.")]
for name in names:
    import_module(name)
after = state()
assert len(names) > 200
print([name for name in before if before[name] != after[name]])
assert not jax._src.xla_bridge._backends, "JAX has started"
"""


def test_imports_change_nothing():
    path = os.pathsep.join(part for part in sys.path if part)
    # The tests themselves choose settings of JAX by the environment.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=plain | {"PYTHONPATH": path},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert program.returncode == 0, program.stderr
    assert program.stdout.strip() == "[]"


def read_state():
    matplotlib.get_backend()  # the first call chooses the default
    return {
        "jax.config": dict(jax.config.values),
        "x64": jax.config.jax_enable_x64,
        "errstate": np.geterr(),
        "rcParams": dict(dict.items(matplotlib.rcParams)),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "environment": dict(os.environ),
    }


@pytest.fixture
def cache_of_its_own(monkeypatch, tmp_path):
    """A folder that calls choose for compiled functions."""
    before = jax.config.jax_compilation_cache_dir
    compilation_cache._update({"jax_compilation_cache_dir": None})
    monkeypatch.setenv(compilation_cache.VARIABLE, str(tmp_path / "compiled"))
    yield str(tmp_path / "compiled")
    compilation_cache._update({"jax_compilation_cache_dir": before})


def test_a_call_that_fails_restores_all_settings(cache_of_its_own, tmp_path):
    settings = []

    def failing_teacher(h):
        settings.append((jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir))
        raise ArithmeticError("teacher")

    before = read_state()
    with jax.enable_x64(False):

        @in_double_precision
        def fail():
            settings.append((jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir))
            raise ArithmeticError("inside")

        with pytest.raises(ArithmeticError, match="inside"):
            fail()
        assert not jax.config.jax_enable_x64
        with pytest.raises(dp.InvalidInput):
            dp.Model(failing_teacher, dp.softmax_attention, length=2, positions=np.eye(2))
        with pytest.raises(ArithmeticError, match="figure"), house_style():
            raise ArithmeticError("figure")
        study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})

        def stop(progress):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            dp.run_study(study, tmp_path / "study", engine="serial", progress=stop)
    assert settings[0] == (True, cache_of_its_own)
    assert read_state() == before


def test_threads_keep_their_own_settings(cache_of_its_own):
    together, results = threading.Barrier(2, timeout=60), {}

    @in_double_precision
    def inside():
        together.wait()  # both threads are inside at once
        return jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir

    def work(x64, over):
        with jax.enable_x64(x64), np.errstate(over=over):
            values = inside()
            results[x64] = values, jax.config.jax_enable_x64, np.geterr()["over"]

    before = read_state()
    threads = [
        threading.Thread(target=work, args=args) for args in ((True, "raise"), (False, "ignore"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results[True] == ((True, cache_of_its_own), True, "raise")
    assert results[False] == ((True, cache_of_its_own), False, "ignore")
    assert read_state() == before


def test_figures_in_overlapping_threads_restore_the_style(tmp_path):
    before, backend = read_state()["rcParams"], matplotlib.get_backend()
    inside, leave = threading.Event(), threading.Event()

    def draw():
        with house_style():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=draw)
    with house_style():
        assert read_state()["rcParams"] != before
        thread.start()
        assert inside.wait(60)
    leave.set()
    thread.join(60)
    assert read_state()["rcParams"] == before and matplotlib.get_backend() == backend


def test_workers_of_a_cluster_lose_the_environment_of_a_task(monkeypatch):
    from dotphase.study import cluster

    seen = []
    for name in cluster.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NPROC", "3")
    result = cluster.PointResult(0, {"value": 1.0}, None, 0.0)
    monkeypatch.setattr(
        cluster, "compute_point", lambda **_: seen.append(dict(os.environ)) or result
    )
    before = dict(os.environ)
    assert cluster.compute_chunk([{}], 0.0, dp.__version__) == [(0, {"value": 1.0}, None, 0.0)]
    assert seen[0]["OMP_NUM_THREADS"] == "1" and seen[0]["NPROC"] == "3"
    assert dict(os.environ) == before
