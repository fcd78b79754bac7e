"""Proximal maps against dense grids, closed forms, restarts and their own symmetry."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.model.derivatives import by_autodiff, loss_derivatives
from dotphase.numerics import proximal_map as proximal_map_module
from dotphase.numerics.proximal_map import (
    PROBES,
    SEARCH_ALL,
    ProximalProblem,
    ProxState,
    probe_directions,
    proximal_map,
    vmap_points,
)
from dotphase.numerics.taylor import Derivatives
from models import softmax, three_tokens

COUNT = 200


def _problem(omega, variance, data):
    eye = np.eye(len(omega))
    return ProximalProblem(omega, eye / variance, eye * np.sqrt(variance), np.asarray(data))


@cache
def _step(loss):
    """One call of the proximal map, compiled once for each loss."""
    return jax.jit(lambda problem, state, call: proximal_map(loss, problem, state, call))


def _run(loss, problem, calls, start=None):
    state = ProxState.initial(problem.omega if start is None else start)
    for call in range(calls):
        state = _step(loss)(problem, state, call)
    return state


@cache
def _values(loss):
    return jax.jit(vmap_points(lambda z, d: loss(z, d).value))


def _objective(loss, problem, x):
    away = np.asarray(x) - problem.omega
    quadratic = 0.5 * np.einsum("in,ij,jn->n", away, problem.precision, away)
    return quadratic + np.asarray(_values(loss)(x, problem.data))


def _paper_problem(rng, spread, variance):
    """Points of the paper's model, the same number in every test."""
    h = rng.normal(size=(2, 1, COUNT)) * 0.5
    mixing = np.array([[0.6, 0.4], [0.4, 0.6]])[..., None]
    targets = 0.7 * vmap_points(dp.softmax_attention)(h) + 0.3 * mixing
    return _problem(rng.normal(size=(2, COUNT)) * spread, variance, targets)


@pytest.fixture(scope="module")
def loss(paper):
    return loss_derivatives(paper)


@pytest.mark.parametrize("variance", [1.0, 12.0, 40.0])
def test_global_minimum_against_a_dense_grid(loss, rng, variance):
    problem = _paper_problem(rng, 0.4, variance)
    values = _objective(loss, problem, _run(loss, problem, PROBES).x)
    axis = np.linspace(-3, 3, 241)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    for n in range(60):
        data = np.broadcast_to(problem.data[..., n : n + 1], (2, 2, grid.shape[1]))
        away = grid - problem.omega[:, n : n + 1]
        best = np.min(0.5 * np.sum(away**2, axis=0) / variance + _values(loss)(grid, data))
        # The grid can only be above the minimum, by its spacing squared.
        assert values[n] <= best + 1e-12


def test_points_with_two_minima_are_found_and_take_the_lower(loss, rng):
    problem = _paper_problem(rng, 0.15, 40.0)
    state = _run(loss, problem, PROBES)
    assert 0.05 < np.mean(state.bistable) < 0.95
    assert np.all(state.nonconvex | ~state.bistable)
    # Sign symmetry: the problem at -omega has the mirrored minima with the same values.
    flipped = problem._replace(omega=-problem.omega)
    np.testing.assert_allclose(
        _objective(loss, problem, state.x),
        _objective(loss, flipped, _run(loss, flipped, PROBES).x),
        rtol=1e-8,
        atol=1e-13,
    )


def test_a_search_of_all_points_finds_at_once_what_many_calls_find(loss, rng):
    problem = _paper_problem(rng, 0.15, 40.0)
    patient, first = _run(loss, problem, PROBES), _run(loss, problem, 1)
    searched = _step(loss)(problem, ProxState.initial(problem.omega), SEARCH_ALL)
    assert np.sum(first.bistable) < 0.5 * np.sum(patient.bistable) < np.sum(searched.bistable)
    values = [_objective(loss, problem, state.x) for state in (searched, patient)]
    np.testing.assert_allclose(*values, rtol=1e-8, atol=1e-13)


def test_minimizers_are_stationary_and_those_of_the_general_path(loss, rng):
    problem = _paper_problem(rng, 0.4, 20.0)
    state = _run(loss, problem, 6)
    slope = jnp.stack(vmap_points(lambda z, d: loss(z, d).gradient)(state.x, problem.data))
    pull = problem.precision @ (np.asarray(state.x) - problem.omega)
    assert np.max(np.abs(slope + pull)) < 1e-8
    plain = dp.Model(teacher=softmax, student=softmax, length=2, sigma=0.5, positions=np.eye(2))
    general = _run(by_autodiff(plain), problem, PROBES)
    np.testing.assert_allclose(_run(loss, problem, PROBES).x, general.x, atol=1e-7)


@pytest.mark.parametrize("variance", [1.0, 12.0])
def test_one_call_settles_every_point(loss, rng, variance):
    """The last Newton step is not evaluated: the error is of the order of its square."""
    problem = _paper_problem(rng, 0.4, variance)
    for start in (None, np.asarray(_run(loss, problem, 1).x) + 0.02 * np.sqrt(variance)):
        state = _run(loss, problem, 1, start)
        slope = jnp.stack(vmap_points(lambda z, d: loss(z, d).gradient)(state.x, problem.data))
        pull = problem.precision @ (np.asarray(state.x) - problem.omega)
        assert np.max(np.abs(slope + pull)) * np.sqrt(variance) < 1e-7


def test_quadratic_loss_has_its_closed_form(rng):
    curvature, dims, count = 3.0, 3, 64
    omega, targets = rng.normal(size=(2, dims, count))

    def loss(x, target):
        away = jnp.stack(x) - target
        return Derivatives(
            0.5 * curvature * jnp.sum(away**2), curvature * away, curvature * jnp.eye(dims)
        )

    state = _run(loss, _problem(omega, 2.0, targets), 1)
    expected = (omega / 2.0 + curvature * targets) / (0.5 + curvature)
    np.testing.assert_allclose(state.x, expected, rtol=1e-10)
    assert not np.any(state.nonconvex)


def test_three_tokens_are_global_too(rng):
    model, count = three_tokens(), 60
    omega = rng.normal(size=(3, count)) * 0.4
    targets = vmap_points(model.teacher)(rng.normal(size=(3, 1, count)) * 0.5)
    problem = _problem(omega, 30.0, targets)
    loss = loss_derivatives(model)
    values = _objective(loss, problem, _run(loss, problem, PROBES).x)
    for _ in range(12):  # restarts from random points never do better
        other = _run(loss, problem, 1, omega + rng.normal(size=omega.shape))
        assert np.all(values <= _objective(loss, problem, other.x) + 1e-10)


def test_points_in_chunks_are_those_of_all_at_once(rng, monkeypatch):
    model, count = dp.positional_semantic_length(5), 2 * proximal_map_module.CHUNK
    loss, omega = loss_derivatives(model), rng.normal(size=(5, count)) * 0.4
    targets = vmap_points(model.teacher)(rng.normal(size=(5, 1, count)) * 0.5)
    problem = _problem(omega, 30.0, targets)

    def results():
        step = jax.jit(lambda problem: proximal_map(loss, problem, ProxState.initial(omega), 3))
        state = step(problem)
        slope = jax.jit(lambda problem, x: proximal_map_module.response(loss, problem, x))
        return *state, slope(problem, state.x), step.lower(problem).as_text()

    *at_once, code = results()
    monkeypatch.setattr(proximal_map_module, "CACHED", 5**2 * proximal_map_module.CHUNK)
    *in_chunks, chunked = results()
    assert (
        f"2x5x{proximal_map_module.CHUNK}x" not in code
        and f"2x5x{proximal_map_module.CHUNK}x" in chunked
    )
    assert 0 < np.sum(at_once[1]) < count
    for one, other in zip(at_once, in_chunks, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 7])
def test_probes_fill_the_outer_ball(dims):
    radius = np.linalg.norm(probe_directions(dims), axis=1)
    assert radius.shape == (PROBES,)
    assert np.all((radius >= 0.5) & (radius <= 1.0))
