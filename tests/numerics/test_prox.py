import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase._numerics.prox import (
    PROBES,
    Problem,
    Track,
    over_points,
    probe_directions,
    proximal_map,
)
from dotphase._numerics.taylor import Derivatives
from dotphase.model.derivatives import by_autodiff, loss_derivatives
from models import softmax, three_tokens


def _problem(omega, variance, data):
    eye = np.eye(len(omega))
    return Problem(omega, eye / variance, eye * np.sqrt(variance), data)


def _run(loss, problem, calls):
    step = jax.jit(lambda track, call: proximal_map(loss, problem, track, call))
    track = Track.fresh(problem.omega)
    for call in range(calls):
        track = step(track, call)
    return track


def _objective(loss, problem, x):
    away = x - problem.omega
    quadratic = 0.5 * np.einsum("in,ij,jn->n", away, problem.precision, away)
    return quadratic + np.asarray(over_points(lambda z, d: loss(z, d).value)(x, problem.data))


def _targets(rng, count):
    h = rng.normal(size=(2, 1, count)) * 0.5
    return 0.7 * over_points(dp.softmax_attention)(h) + 0.3 * np.array(
        [[[0.6], [0.4]], [[0.4], [0.6]]]
    )


@pytest.mark.parametrize("variance", [1.0, 12.0, 40.0])
def test_global_minimum_against_a_dense_grid(paper, rng, variance):
    count = 150
    omega = rng.normal(size=(2, count)) * 0.4
    problem = _problem(omega, variance, np.asarray(_targets(rng, count)))
    loss = loss_derivatives(paper)
    track = _run(loss, problem, PROBES)
    found = _objective(loss, problem, np.asarray(track.x))
    axis = np.linspace(-3, 3, 241)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    values = jax.jit(over_points(lambda z, d: loss(z, d).value))
    for n in range(count):
        data = np.broadcast_to(problem.data[..., n : n + 1], (2, 2, grid.shape[1]))
        away = grid - omega[:, n : n + 1]
        best = np.min(0.5 * np.sum(away**2, axis=0) / variance + values(grid, data))
        # The grid can only be above the minimum, by its spacing squared.
        assert found[n] <= best + 1e-12


def test_points_with_two_minima_are_found_and_take_the_lower(paper, rng):
    count = 600
    omega = rng.normal(size=(2, count)) * 0.15
    problem = _problem(omega, 40.0, np.asarray(_targets(rng, count)))
    loss = loss_derivatives(paper)
    track = _run(loss, problem, PROBES)
    assert 0.05 < np.mean(track.rival) < 0.95
    assert np.all(track.suspect | ~track.rival)
    here = _objective(loss, problem, np.asarray(track.x))
    # Sign symmetry: the problem at -omega has the mirrored minima with the same values.
    flipped = problem._replace(omega=-problem.omega)
    there = _run(loss, flipped, PROBES)
    np.testing.assert_allclose(
        here, _objective(loss, flipped, np.asarray(there.x)), rtol=1e-8, atol=1e-13
    )


def test_minimisers_are_stationary(paper, rng):
    omega = rng.normal(size=(2, 400)) * 0.4
    problem = _problem(omega, 20.0, np.asarray(_targets(rng, 400)))
    loss = loss_derivatives(paper)
    track = _run(loss, problem, 6)
    slope = jnp.stack(over_points(lambda z, d: loss(z, d).gradient)(track.x, problem.data))
    pull = problem.precision @ (np.asarray(track.x) - omega)
    assert np.max(np.abs(slope + pull)) < 1e-8


def test_general_path_gives_the_same_points(paper, rng):
    omega = rng.normal(size=(2, 200)) * 0.4
    problem = _problem(omega, 20.0, np.asarray(_targets(rng, 200)))
    plain = dp.Model(teacher=softmax, student=softmax, length=2, sigma=0.5, positions=np.eye(2))
    closed = _run(loss_derivatives(paper), problem, PROBES)
    general = _run(by_autodiff(plain), problem, PROBES)
    np.testing.assert_allclose(closed.x, general.x, atol=1e-7)


def test_quadratic_loss_has_its_closed_form(rng):
    curvature, dims, count = 3.0, 5, 64
    targets = rng.normal(size=(dims, count))
    omega = rng.normal(size=(dims, count))

    def loss(x, target):
        away = jnp.stack(x) - target
        return Derivatives(
            0.5 * curvature * jnp.sum(away**2), curvature * away, curvature * jnp.eye(dims)
        )

    track = _run(loss, _problem(omega, 2.0, targets), 1)
    expected = (omega / 2.0 + curvature * targets) / (0.5 + curvature)
    np.testing.assert_allclose(track.x, expected, rtol=1e-10)
    assert not np.any(track.suspect)


def test_three_tokens_are_global_too(rng):
    model = three_tokens()
    count = 60
    omega = rng.normal(size=(3, count)) * 0.4
    targets = np.asarray(over_points(model.teacher)(rng.normal(size=(3, 1, count)) * 0.5))
    problem = _problem(omega, 30.0, targets)
    loss = loss_derivatives(model)
    found = _objective(loss, problem, np.asarray(_run(loss, problem, PROBES).x))
    again = jax.jit(lambda track: proximal_map(loss, problem, track, 0))
    for _ in range(12):  # restarts from random places never do better
        other = again(Track.fresh(omega + rng.normal(size=omega.shape)))
        assert np.all(found <= _objective(loss, problem, np.asarray(other.x)) + 1e-10)


@pytest.mark.parametrize("dims", [1, 2, 7])
def test_probes_fill_the_outer_ball(dims):
    radius = np.linalg.norm(probe_directions(dims), axis=1)
    assert radius.shape == (PROBES,)
    assert np.all((radius >= 0.5) & (radius <= 1.0))
