"""Compiled functions are dropped before the process runs out of memory maps."""

import gc
from weakref import WeakSet

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.runtime import jit_cache_limit
from dotphase.runtime.compiled_once import CompiledOnce
from dotphase.runtime.precision import in_double_precision


@pytest.fixture
def cleared(monkeypatch):
    """Calls of `jax.clear_caches`; every call checks, and functions of other tests are kept."""
    calls = []
    gc.freeze()  # to look through the objects of earlier tests takes seconds
    monkeypatch.setattr(jit_cache_limit._state, "functions", WeakSet())
    monkeypatch.setattr(jax, "clear_caches", lambda: calls.append("all"))
    monkeypatch.setattr(jit_cache_limit, "CHECK_INTERVAL", 0.0)
    monkeypatch.setattr(jit_cache_limit._state, "next_check", 0.0)
    yield calls
    gc.unfreeze()


@pytest.fixture
def double():
    function = CompiledOnce(lambda x: 2 * x)
    assert function(np.float64(3)) == 6
    return function


@in_double_precision
def compile_something(number):
    return jax.jit(lambda x: x + number)(np.ones(3)).sum()


def compile_some():
    for number in range(4):
        assert compile_something(number) == 3 + 3 * number


def set_fractions(monkeypatch, *fractions):
    """Set the fractions that the next counts return; the last is repeated."""
    remaining = list(fractions)

    def fraction():
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    monkeypatch.setattr(jit_cache_limit, "memory_map_fraction", fraction)


def test_nothing_is_dropped_far_from_the_limit(cleared, double, monkeypatch):
    set_fractions(monkeypatch, 0.7)
    compile_some()
    assert cleared == [] and double._function._cache_size() == 1


def test_functions_of_models_are_dropped_first(cleared, double, monkeypatch):
    set_fractions(monkeypatch, 0.8, 0.3)
    assert jit_cache_limit.clear_if_near_limit()
    assert cleared == [] and double._function._cache_size() == 0
    assert double(np.float64(4)) == 8 and double._function._cache_size() == 1


@pytest.mark.parametrize("allowed", [True, False])
def test_all_caches_are_cleared_if_other_functions_occupy_the_maps(cleared, monkeypatch, allowed):
    set_fractions(monkeypatch, 0.8)
    dp.keep_compiled(clear=allowed)
    try:
        compile_some()
    finally:
        dp.keep_compiled()
    assert bool(cleared) is allowed


def test_checks_are_not_repeated_at_once(cleared, monkeypatch):
    set_fractions(monkeypatch, 0.8)
    monkeypatch.setattr(jit_cache_limit, "CHECK_INTERVAL", 60.0)
    assert jit_cache_limit.clear_if_near_limit() and not jit_cache_limit.clear_if_near_limit()
    monkeypatch.setattr(jit_cache_limit._state, "next_check", 0.0)


def test_models_in_a_long_list_are_solved_while_functions_are_dropped(cleared, monkeypatch):
    set_fractions(monkeypatch, *[0.8] * 8, 0.3)
    models = [dp.scalar_link(lambda h, a=a: a * h, lambda h: h, ridge=0.1) for a in (1.0, 2.0)]
    solutions = dp.solve_many([(model, 1.0, "semantic") for model in models], log2_points=12)
    assert all(solution.converged for solution in solutions) and len(cleared) >= 2


def test_code_that_is_dropped_frees_memory_maps(monkeypatch):
    functions = [CompiledOnce(lambda x, k=k: (x * k) @ x.T) for k in range(8)]
    for function in functions:
        function(np.ones((4, 4)))
    before = jit_cache_limit.memory_map_fraction()
    if before == 0:
        pytest.skip("this system has no limit on memory maps")
    for function in functions:
        function.drop()
    assert jit_cache_limit.memory_map_fraction() < before


def test_the_fraction_follows_the_files_of_linux(monkeypatch, tmp_path):
    (tmp_path / "maps").write_text("a map\n" * 30)
    (tmp_path / "limit").write_text("120\n")
    monkeypatch.setattr(jit_cache_limit, "_PROCESS_MAPS", tmp_path / "maps")
    monkeypatch.setattr(jit_cache_limit, "_MAX_MAP_COUNT", tmp_path / "limit")
    assert jit_cache_limit.memory_map_fraction() == 0.25
    monkeypatch.setattr(jit_cache_limit, "_MAX_MAP_COUNT", tmp_path / "absent")
    assert jit_cache_limit.memory_map_fraction() == 0.0
