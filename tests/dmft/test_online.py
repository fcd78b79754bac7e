"""One pass over fresh sentences: closed forms, exact steps, and training."""

import dataclasses
import re
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dotphase as dp
import dotphase.dmft.online
from dotphase.dmft import one_pass
from dotphase.dmft.initialization import limit_initialization
from dotphase.dmft.online import OnePass, _rules
from dotphase.finite_d.initialization import resolve_start, start_components
from dotphase.finite_d.loss import data_loss
from dotphase.runtime.precision import use_precision
from dotphase.theory.gradient_flow import _Field
from result_checks import assert_is_a_result

START = dp.start_from(theta=0.1, m=0.2, q=0.08)
RULE, COARSE_RULE = (dp.analysis.gauss_hermite(order, 4) for order in (10, 6))


@pytest.fixture(scope="module")
def model():
    return dp.positional_semantic(ridge=0.02)


@pytest.fixture(scope="module")
def runs(model):
    """Two runs at finite d."""
    return dp.online(model, [0.5, 2.0], 4.0, START, d=40, repetitions=2, order=6)


def velocity(model, state, lr, rule, spherical=False):
    initial = limit_initialization(model, start_components(model, START))
    return np.asarray(one_pass.velocity(model, initial, state, lr, rule, spherical))


def test_small_learning_rates_give_gradient_flow(model):
    """Of the derivative, the part linear in lr is the flow, with the penalty in place."""
    with use_precision(np.float64):
        initial = limit_initialization(model, start_components(model, START))
        state = one_pass.pack(np.asarray(initial.weights))
        forward, backward = (velocity(model, state, lr, RULE) for lr in (1.0, -1.0))
        linear, square = (forward - backward) / 2, (forward + backward) / 2
        flow = _Field(model, 1.0)
        expected = flow.velocity(flow.state(0.2, 0.1, 0.08))[:, 0]
    t, m, _ = state
    np.testing.assert_allclose([abs(m), t], [0.2, 0.4])
    np.testing.assert_allclose(linear[[1, 0]] * [np.sign(m), 1], expected[:2], rtol=1e-5)
    whole = 2 * t * linear[0] + 2 * m * linear[1] + linear[2]
    np.testing.assert_allclose(whole, expected[2], rtol=1e-5)
    np.testing.assert_allclose(square[:2], 0, atol=1e-15)
    assert square[2] > 0


class Erf(eqx.Module):
    """A soft committee of erf units, as one-token attention."""

    def __call__(self, h):
        return jnp.sum(jax.scipy.special.erf(h / jnp.sqrt(2.0)), axis=1).reshape(1, 1)


def committee(units, teacher_units):
    return dp.Model(
        teacher=Erf(), student=Erf(), length=1, sigma=1.0, ridge=1e-12,
        student_rank=units, teacher_rank=teacher_units,
    )  # fmt: skip


def i3(C, i, j, k):
    """E g'(x_i) x_j g(x_k) of Saad and Solla (1995), for erf units."""
    size = (1 + C[i, i]) * (1 + C[k, k]) - C[i, k] ** 2
    return 2 / np.pi * (C[j, k] * (1 + C[i, i]) - C[i, j] * C[i, k]) / (1 + C[i, i]) / size**0.5


def i4(C, i, j, k, l):
    """E g'(x_i) g'(x_j) g(x_k) g(x_l)."""
    a, b = 1 + C[i, i], 1 + C[j, j]
    size = a * b - C[i, j] ** 2

    def entry(k, l):
        crossed = C[i, j] * (C[i, k] * C[j, l] + C[i, l] * C[j, k])
        return size * C[k, l] - C[j, k] * C[j, l] * a - C[i, k] * C[i, l] * b + crossed

    variances = (size + entry(k, k)) * (size + entry(l, l))
    return 4 / np.pi**2 / size**0.5 * np.arcsin(entry(k, l) / variances**0.5)


def saad_solla(theta, gram, lr):
    """Time derivatives of R = Q^T Q* and Q = Q^T Q of a soft committee."""
    r, t = theta.shape
    C = np.block([[gram, theta], [theta.T, np.eye(t)]])
    units = range(r + t)
    sign = np.array([-1.0] * r + [1.0] * t)
    force = np.array([[sum(sign[k] * i3(C, i, j, k) for k in units) for j in units]
                      for i in range(r)])  # fmt: skip
    noise = [
        [sum(sign[k] * sign[l] * i4(C, i, j, k, l) for k in units for l in units) for j in range(r)]
        for i in range(r)
    ]
    drift = lr * force
    return drift[:, r:], drift[:, :r] + drift[:, :r].T + lr**2 * np.array(noise)


def test_two_erf_units_obey_the_equations_of_saad_and_solla():
    model, rng = committee(2, 2), np.random.default_rng(0)
    theta = np.array([[0.5, -0.2], [0.1, 0.3]])
    rest = 0.4 * rng.normal(size=(2, 2))
    with use_precision(np.float64):
        start = dp.start_from(theta=theta, q=theta @ theta.T + rest @ rest.T)
        initial = limit_initialization(model, start_components(model, start))
        state = one_pass.pack(np.asarray(initial.weights))
        rule = dp.analysis.gauss_hermite(20, 4)
        speed = one_pass.velocity(model, initial, state, 0.7, rule, False)
    known, gram = np.asarray(speed)[:4].reshape(2, 2), np.asarray(speed)[4:].reshape(2, 2)
    by_theta, by_gram = saad_solla(theta, theta @ theta.T + rest @ rest.T, 0.7)
    np.testing.assert_allclose(known, by_theta, atol=2e-5)
    whole = known @ theta.T + theta @ known.T + gram
    np.testing.assert_allclose(whole, by_gram, atol=5e-5)


@pytest.mark.parametrize("lr", [0.5, 2.5])
def test_the_path_of_one_erf_unit_is_that_of_saad_and_solla(lr):
    def speed(_, state):
        R, Q = saad_solla(state[:1, None], state[1:, None], lr)
        return [R[0, 0], Q[0, 0]]

    start = dp.start_from(theta=0.2, q=0.3)
    path = dp.online(committee(1, 1), [2.0, 5.0], lr, start, order=24)
    expected = solve_ivp(speed, (0, 5), [0.2, 0.3], t_eval=[0, 2, 5], rtol=1e-8, atol=1e-10).y
    np.testing.assert_allclose([path.theta, path.q], expected, atol=1e-4)
    R, Q = expected
    error = 2 / np.pi * (np.arcsin(Q / (1 + Q)) + np.arcsin(0.5))
    error -= 4 / np.pi * np.arcsin(R / np.sqrt(2 * (1 + Q)))
    np.testing.assert_allclose(path.test_error, error, atol=1e-4)


def test_the_escape_direction_switches_at_the_published_mixing():
    """Arnaboldi et al. (arXiv:2506.02651): .64 at a = 1, unit tokens and weights of length sqrt d.

    There the two escape rates from zero overlaps are equal, for small steps on the sphere.
    """
    share = 1 / (1 + np.exp(-2.0))
    mixing = [[share, 1 - share], [1 - share, share]]
    rule = dp.analysis.gauss_hermite(24, 4)

    def rates(omega):
        model = dp.positional_semantic(omega=omega, sigma=1.0, ridge=1e-9, mixing=mixing)
        start = dp.start_from(theta=0.1, m=0.1, q=1.0)
        initial = limit_initialization(model, start_components(model, start))
        small, lr = 0.03, 1e-3
        changes = []
        for overlaps in ([small, 0.0], [0.0, small]):
            state = np.array([*overlaps, 1 - small**2])
            speed = np.asarray(one_pass.velocity(model, initial, state, lr, rule, True))
            changes.append(speed[:2] @ overlaps)
        return np.array(changes)

    with use_precision(np.float64):
        below, above = (rates(omega) for omega in (0.62, 0.66))
    assert below[0] > below[1] > 0
    assert above[1] > above[0] > 0


def test_a_step_at_finite_d_is_one_of_training(model):
    """With the coordinates of real sentences, the overlaps change as those of real weights."""
    d, batch, lr = 30, 3, 2.0
    with use_precision(np.float64):
        key = jax.random.key(3)
        initialize = resolve_start(model, START)
        positions = np.asarray(dp.custom_training.position_vectors(model, d))
        data = dp.sample(model, d, batch, 5)
        weights = np.asarray(initialize(key, data.teacher_weights, jnp.asarray(positions)))
        teacher, tokens = np.asarray(data.teacher_weights), np.asarray(data.tokens)
        columns = [teacher / d**0.5, positions[:1].T, weights / d**0.5]
        basis = np.linalg.qr(np.concatenate(columns, axis=1))[0]
        start = one_pass.Initialization(
            teacher=(basis.T @ teacher).T / d**0.5,
            positions=positions @ basis,
            weights=(basis.T @ weights).T / d**0.5,
            free=np.ones((1, 3)),
        )
        x = np.moveaxis(tokens @ basis, 0, 2)
        left = tokens - tokens @ basis @ basis.T
        outside = np.moveaxis(left @ left.swapaxes(1, 2), 0, 2) / d

        @jax.jit
        def advance(x, outside):
            averages = one_pass.sentence_averages(
                model, start, start.weights, x, jnp.zeros((0, batch)), outside, float(d)
            )
            state = one_pass.step(model, start.free, start.weights, averages, lr, batch / d)
            return one_pass.unpack(state, start)

        after = np.asarray(advance(x, outside))
        reduced = eqx.filter_jit(dp.custom_training.reduce)(model, data)
        penalized = model.replace(ridge=float(model.ridge) * batch / d)
        value_and_gradient = eqx.filter_jit(dp.custom_training.value_and_gradient)
        gradient = np.asarray(value_and_gradient(penalized, reduced, weights)[1])
        moved = weights - lr * gradient
        # Products of different sentences outside the basis are left out of the chain.
        fields = dp.custom_training.project(reduced.z, weights)
        force = jax.jit(jax.grad(partial(data_loss, model, reduced)))(fields)
        force = np.asarray(force)[:, 0]
        crossed = np.einsum("ld,kd,l,k->", *[left.reshape(-1, d)] * 2, *[force.T.ravel()] * 2)
        own = np.einsum("nld,nkd,ln,kn->", left, left, force, force)
    np.testing.assert_allclose(after @ start.teacher.T, moved.T @ teacher / d)
    np.testing.assert_allclose(after @ start.positions.T, moved.T @ positions.T / d**0.5)
    gram = float(moved[:, 0] @ moved[:, 0]) / d - lr**2 * float(crossed - own) / d**2
    np.testing.assert_allclose(float((after @ after.T)[0, 0]), gram)


def test_runs_at_finite_d_follow_the_limit(model):
    """Their mean differs from the limit by terms of order 1/d."""
    rule = {"order": 6}
    limit = dp.online(model, [2.0, 3.0], 4.0, START, **rule)
    runs = dp.online(model, [2.0, 3.0], 4.0, START, d=200, repetitions=32, **rule)
    for name in ("test_error", "theta", "q"):
        expected = getattr(limit, name)
        error = 4 * runs.stderr[name] + 10 / 200 * expected
        assert np.all(np.abs(getattr(runs, name) - expected) < error), name


def test_random_starts_leave_zero_overlaps_only_at_finite_d():
    model = dp.positional_semantic(ridge=1e-4)
    with pytest.warns(UserWarning, match="give d"):
        limit = dp.online(model, [10.0, 20.0], 16.0, order=6)
    assert np.all(limit.theta == 0)
    assert np.all(limit.m == 0)
    assert np.isnan(limit.exit_alpha()).all()
    runs = dp.online(model, [30.0, 60.0], 16.0, d=200, repetitions=8, batch_fraction=0.05, order=6)
    shares = runs.mechanism_shares()
    assert np.isfinite(runs.exit_alpha()).sum() >= 6
    assert shares["semantic"] + shares["positional"] + shares["mixed"] >= 0.75


def test_batches_become_single_sentences(model):
    """Steps on batches of b d sentences differ from the equations by order b."""
    limit = dp.online(model, [2.0, 4.0], 6.0, START, order=6).theta[1:]
    whole = dp.online(model, [2.0, 4.0], 6.0, START, batch_fraction=0.5, order=6).theta[1:] - limit
    with use_precision(np.float64):
        initial = limit_initialization(model, start_components(model, START))
        recorded, lr = jnp.array([8, 16]), jnp.full(16, 6.0)
        path = one_pass.descend(model, initial, lr, 0.25, recorded, False, COARSE_RULE)
        half = np.abs(path[:, 0, 0]) * float(model.rho[0]) - limit
    assert np.all(np.abs(whole) > 1e-5)
    np.testing.assert_allclose(half / whole, 0.5, rtol=0.1)


def test_the_sphere_keeps_the_length(model):
    path = dp.online(
        model, [1.0, 2.0], 8.0, START, spherical=True, order=6, d=40, repetitions=2
    )  # fmt: skip
    np.testing.assert_allclose(path.q, path.q[0], rtol=1e-5)
    assert np.ptp(path.test_error) > 1e-5
    with use_precision(np.float64):
        initial = limit_initialization(model, start_components(model, START))
        t, m, rest = one_pass.pack(np.asarray(initial.weights))
        speed = velocity(model, np.array([t, m, rest]), 8.0, COARSE_RULE, spherical=True)
    assert abs(speed[0]) > 1e-4
    assert 2 * t * speed[0] + 2 * m * speed[1] + speed[2] == pytest.approx(0, abs=1e-12)


def test_rounded_moments_are_stated(model, runs):
    """Moments are exact in the limit, and rounded to whole steps at finite d."""
    assert "whole steps of 0.025" in str(runs)
    exact = dp.online(model, [1.0, 2.0123], 8.0, START, order=6)
    assert exact.alpha.tolist() == [0.0, 1.0, 2.0123] and "whole steps" not in str(exact)


def test_schedules_and_functions_of_alpha(model):
    alphas = [1.0, 4.0]
    path = dp.online(model, alphas, 6.0, START, schedule="inverse", order=6)
    again = dp.online(model, alphas, lambda alpha: 6.0 / (1 + alpha), START, order=6)
    np.testing.assert_allclose(path.theta, again.theta, rtol=1e-8)
    np.testing.assert_allclose(path.lr, [6.0, 3.0, 1.2])
    assert dp.online(model, alphas, 6.0, START, schedule="cosine", order=6).lr[-1] == 0
    linear = dp.online(model, alphas, 6.0, START, schedule="linear", order=6)
    assert linear.theta[-1] != path.theta[-1]


def test_paths_are_results(runs, tmp_path):
    assert isinstance(runs, OnePass)
    assert_is_a_result(runs, tmp_path)
    data = runs.dataset()
    assert data["theta"].dims == ("alpha",)
    assert data["theta_samples"].dims == ("repetition", "alpha")
    assert set(runs.to_dict()) >= {"alpha", "test_error", "theta", "m", "q", "stderr", "seconds"}


def test_runs_do_not_depend_on_the_records(model, runs):
    others = dp.online(model, [1.25, 2.0], 4.0, START, d=40, repetitions=2, order=6)
    assert others.theta[1] != runs.theta[1]
    np.testing.assert_allclose(others.theta[-1], runs.theta[-1], rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.0}, {"alpha": [2.0, 1.0]}, {"alpha": [-1.0, 1.0]}, {"alpha": "one"},
        {"lr": 0.0}, {"lr": lambda alpha: -1.0}, {"lr": np.nan}, {"start": "nowhere"},
        {"d": 1}, {"d": 2}, {"batch_fraction": 2.0}, {"schedule": "none"}, {"repetitions": 0},
        {"order": 2}, {"scale": -1.0}, {"start": lambda key, teacher, positions: teacher},
    ],
)  # fmt: skip
def test_bad_arguments_are_named(model, change):
    arguments = {"alpha": 1.0, "lr": 1.0, "start": "semantic"} | change
    with pytest.raises(dp.InvalidInput, match=next(iter(change))):
        dp.online(model, **arguments)


def test_tokens_must_be_white_and_independent(model):
    with pytest.raises(dp.InvalidInput, match="correlation"):
        dp.online(model.replace(correlation=[[1, 0.5], [0.5, 1]]), 1.0)


def test_a_descent_that_diverges_is_not_hidden():
    path = dp.online(dp.scalar_link(lambda h: h, lambda h: h), [5.0, 400.0], 5.0, "semantic")
    assert path.diverged
    assert path.mechanism_shares()["diverged"] == 1
    assert "DIVERGED" in str(path)


@pytest.mark.parametrize("lr", [1e100, 1e155])
def test_a_learning_rate_that_overflows_is_refused(model, lr):
    with pytest.raises(dp.InvalidInput, match="lr"):
        dp.online(model, 1.0, lr, "semantic")


def test_stiff_equations_are_given_up(model, monkeypatch):
    monkeypatch.setattr(dotphase.dmft.online, "MAX_EVALUATIONS", 50)
    with pytest.raises(RuntimeError, match="smaller lr"):
        dp.online(model, 20.0, 1e3, "semantic")


def test_rules_of_different_seeds_have_different_points():
    attention = dp.softmax_attention
    wide = dp.Model(attention, attention, length=3, sigma=0.5, positions=np.eye(3), ridge=0.01)
    first, second = (_rules(wide, dp.analysis.OnlineSettings(seed=seed)) for seed in (0, 1))
    assert not np.array_equal(first[1].points, second[0].points)


def test_columns_of_the_text_are_apart(runs):
    precise = dataclasses.replace(
        runs, theta=runs.theta / 3, stderr=runs.stderr | {"theta": np.full_like(runs.theta, 1e-12)}
    )
    rows = str(precise).splitlines()[2:-2]
    assert all(len(re.split(r" {2,}", row.strip())) == 5 for row in rows)
