"""Compiled code is let go before there is no place for it."""

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.runtime import jit_cache_limit
from dotphase.runtime.precision import in_double_precision


@pytest.fixture
def cleared(monkeypatch):
    """How often compiled functions were let go."""
    calls = []
    monkeypatch.setattr(jax, "clear_caches", lambda: calls.append(jit_cache_limit._compiled.count))
    monkeypatch.setattr(jit_cache_limit, "BETWEEN", 2)
    return calls


@in_double_precision
def compile_something(number):
    return jax.jit(lambda x: x + number)(np.ones(3)).sum()


def compile_some():
    for number in range(4):
        assert compile_something(number) == 3 + 3 * number


def test_nothing_is_let_go_while_there_is_room(cleared, monkeypatch):
    monkeypatch.setattr(jit_cache_limit, "memory_map_fraction", lambda: 0.7)
    compile_some()
    assert cleared == []


def test_everything_is_let_go_where_most_is_taken(cleared, monkeypatch):
    monkeypatch.setattr(jit_cache_limit, "memory_map_fraction", lambda: 0.8)
    compile_some()
    assert cleared
    jit_cache_limit._compiled.count = 2
    assert (
        jit_cache_limit.clear_if_near_limit() and not jit_cache_limit.clear_if_near_limit()
    )  # not again before others are compiled


def test_a_long_list_of_models_makes_room_on_its_way(cleared, monkeypatch):
    monkeypatch.setattr(jit_cache_limit, "memory_map_fraction", lambda: 0.8)
    models = [dp.scalar_link(lambda h, a=a: a * h, lambda h: h, ridge=0.1) for a in (1.0, 2.0)]
    found = dp.solve_many([(model, 1.0, "semantic") for model in models], log2_points=12)
    assert all(solution.found for solution in found) and len(cleared) >= 2


def test_what_is_taken_is_what_the_system_says(monkeypatch, tmp_path):
    (tmp_path / "maps").write_text("a piece\n" * 30)
    (tmp_path / "most").write_text("120\n")
    monkeypatch.setattr(jit_cache_limit, "_PIECES", tmp_path / "maps")
    monkeypatch.setattr(jit_cache_limit, "_MOST", tmp_path / "most")
    assert jit_cache_limit.memory_map_fraction() == 0.25
    monkeypatch.setattr(jit_cache_limit, "_MOST", tmp_path / "absent")
    assert jit_cache_limit.memory_map_fraction() == 0.0
