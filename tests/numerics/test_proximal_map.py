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
    """Compiled once for a loss: what the tests of one share is most of their time."""
    return jax.jit(lambda problem, track, call: proximal_map(loss, problem, track, call))


def _run(loss, problem, calls, start=None):
    track = ProxState.initial(problem.omega if start is None else start)
    for call in range(calls):
        track = _step(loss)(problem, track, call)
    return track


@cache
def _values(loss):
    return jax.jit(vmap_points(lambda z, d: loss(z, d).value))


def _objective(loss, problem, x):
    away = np.asarray(x) - problem.omega
    quadratic = 0.5 * np.einsum("in,ij,jn->n", away, problem.precision, away)
    return quadratic + np.asarray(_values(loss)(x, problem.data))


def _paper_problem(rng, spread, variance):
    """Points of the paper's model, as many in every test."""
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
    found = _objective(loss, problem, _run(loss, problem, PROBES).x)
    axis = np.linspace(-3, 3, 241)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    for n in range(60):
        data = np.broadcast_to(problem.data[..., n : n + 1], (2, 2, grid.shape[1]))
        away = grid - problem.omega[:, n : n + 1]
        best = np.min(0.5 * np.sum(away**2, axis=0) / variance + _values(loss)(grid, data))
        # The grid can only be above the minimum, by its spacing squared.
        assert found[n] <= best + 1e-12


def test_points_with_two_minima_are_found_and_take_the_lower(loss, rng):
    problem = _paper_problem(rng, 0.15, 40.0)
    track = _run(loss, problem, PROBES)
    assert 0.05 < np.mean(track.bistable) < 0.95
    assert np.all(track.nonconvex | ~track.bistable)
    # Sign symmetry: the problem at -omega has the mirrored minima with the same values.
    flipped = problem._replace(omega=-problem.omega)
    here, there = (
        _objective(loss, some, x)
        for some, x in ((problem, track.x), (flipped, _run(loss, flipped, PROBES).x))
    )
    np.testing.assert_allclose(here, there, rtol=1e-8, atol=1e-13)


def test_minimisers_are_stationary_and_those_of_the_general_path(loss, rng):
    problem = _paper_problem(rng, 0.4, 20.0)
    track = _run(loss, problem, 6)
    slope = jnp.stack(vmap_points(lambda z, d: loss(z, d).gradient)(track.x, problem.data))
    pull = problem.precision @ (np.asarray(track.x) - problem.omega)
    assert np.max(np.abs(slope + pull)) < 1e-8
    plain = dp.Model(teacher=softmax, student=softmax, length=2, sigma=0.5, positions=np.eye(2))
    general = _run(by_autodiff(plain), problem, PROBES)
    np.testing.assert_allclose(_run(loss, problem, PROBES).x, general.x, atol=1e-7)


@pytest.mark.parametrize("variance", [1.0, 12.0])
def test_one_call_settles_every_point(loss, rng, variance):
    """The last Newton step is taken without looking: what is left is of the order of its square."""
    problem = _paper_problem(rng, 0.4, variance)
    for start in (None, np.asarray(_run(loss, problem, 1).x) + 0.02 * np.sqrt(variance)):
        track = _run(loss, problem, 1, start)
        slope = jnp.stack(vmap_points(lambda z, d: loss(z, d).gradient)(track.x, problem.data))
        pull = problem.precision @ (np.asarray(track.x) - problem.omega)
        assert np.max(np.abs(slope + pull)) * np.sqrt(variance) < 1e-7


def test_quadratic_loss_has_its_closed_form(rng):
    curvature, dims, count = 3.0, 3, 64
    omega, targets = rng.normal(size=(2, dims, count))

    def loss(x, target):
        away = jnp.stack(x) - target
        return Derivatives(
            0.5 * curvature * jnp.sum(away**2), curvature * away, curvature * jnp.eye(dims)
        )

    track = _run(loss, _problem(omega, 2.0, targets), 1)
    expected = (omega / 2.0 + curvature * targets) / (0.5 + curvature)
    np.testing.assert_allclose(track.x, expected, rtol=1e-10)
    assert not np.any(track.nonconvex)


def test_three_tokens_are_global_too(rng):
    model, count = three_tokens(), 60
    omega = rng.normal(size=(3, count)) * 0.4
    targets = vmap_points(model.teacher)(rng.normal(size=(3, 1, count)) * 0.5)
    problem = _problem(omega, 30.0, targets)
    loss = loss_derivatives(model)
    found = _objective(loss, problem, _run(loss, problem, PROBES).x)
    for _ in range(12):  # restarts from random places never do better
        other = _run(loss, problem, 1, omega + rng.normal(size=omega.shape))
        assert np.all(found <= _objective(loss, problem, other.x) + 1e-10)


def test_points_in_chunks_are_those_of_all_at_once(rng, monkeypatch):
    model, count = dp.positional_semantic_length(5), 2 * proximal_map_module.CHUNK
    loss, omega = loss_derivatives(model), rng.normal(size=(5, count)) * 0.4
    targets = vmap_points(model.teacher)(rng.normal(size=(5, 1, count)) * 0.5)
    problem = _problem(omega, 30.0, targets)

    def found():
        step = jax.jit(lambda problem: proximal_map(loss, problem, ProxState.initial(omega), 3))
        track = step(problem)
        slope = jax.jit(lambda problem, x: proximal_map_module.response(loss, problem, x))
        return *track, slope(problem, track.x), step.lower(problem).as_text()

    *whole, code = found()
    monkeypatch.setattr(proximal_map_module, "CACHED", 5**2 * proximal_map_module.CHUNK)
    *parts, chunked = found()
    assert (
        f"2x5x{proximal_map_module.CHUNK}x" not in code
        and f"2x5x{proximal_map_module.CHUNK}x" in chunked
    )
    assert 0 < np.sum(whole[1]) < count
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 7])
def test_probes_fill_the_outer_ball(dims):
    radius = np.linalg.norm(probe_directions(dims), axis=1)
    assert radius.shape == (PROBES,)
    assert np.all((radius >= 0.5) & (radius <= 1.0))
