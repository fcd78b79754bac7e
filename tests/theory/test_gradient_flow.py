"""The population flow: a gradient flow, with the right fixed points, and what descent does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dotphase as dp
from dotphase.theory.gradient_flow import _Field


def test_the_velocity_is_minus_a_gradient(paper):
    """E from the theory's average, differentiated by differences in m, t and W."""
    field = _Field(paper, 2.0)
    state, step = np.array([[0.2], [0.3], [0.25]]), 1e-4
    E, by_m, by_t, by_w = field.slopes(state)[:, 0]
    moved = state + step * np.kron(np.eye(3), [[1, -1]])
    values = field.slopes(moved)[0]
    slopes = (values[::2] - values[1::2]) / (2 * step)
    np.testing.assert_allclose(slopes, [by_m, by_t, by_w], rtol=5e-3)
    # d(loss)/dtau = -|dQ/dtau|^2/d for dQ/dtau = -(k Q + E_t Q* + sqrt(d) E_m p_1).
    m, t, w = state[:, 0]
    k = 2 * by_w + 0.01 / 2
    squared = k * k * w + by_t**2 + by_m**2 + 2 * k * (t * by_t + m * by_m)
    by_state = np.array([by_m, by_t, by_w + 0.01 / 4])
    assert by_state @ field.velocity(state)[:, 0] == pytest.approx(-squared, rel=1e-9)
    assert E > 0


def test_the_loss_of_a_multiple_of_the_teacher(paper):
    """E[ell] at Q = c Q* is an average over the two fields of the teacher alone."""
    x, w = np.polynomial.hermite_e.hermegauss(40)
    h = 0.5 * np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    weight = np.outer(w, w).ravel() / w.sum() ** 2

    def attention(h):
        score = np.exp(h[:, :, None] * h[:, None, :])
        return score / score.sum(axis=-1, keepdims=True)

    target = 0.7 * attention(h) + 0.3 * np.array([[0.6, 0.4], [0.4, 0.6]])
    for c in (0.4, 0.9):
        expected = 0.125 * weight @ np.sum((target - attention(c * h)) ** 2, axis=(1, 2))
        found = _Field(paper, np.inf).loss(np.array([[0.0], [c], [c * c]]))[0]
        assert found == pytest.approx(expected, rel=1e-4)


def test_fixed_points_without_ridge(paper):
    semantic, positional, nothing = dp.flow.fixed_points(paper, starts=3)
    # The best multiple of Q*, found by minimising the error along it.
    errors = minimize_scalar(
        lambda c: float(_Field(paper, np.inf).loss(np.array([[0.0], [c], [c * c]]))[0]),
        bounds=(0.3, 1.5), method="bounded",
    )  # fmt: skip
    assert semantic.m == 0 and semantic.theta == pytest.approx(0.25 * errors.x, rel=1e-4)
    assert semantic.stable
    assert positional.theta == 0 and positional.m == pytest.approx(0.2888, rel=1e-3)
    assert not positional.stable and positional.rates[0] == pytest.approx(0.00135, rel=0.02)
    assert nothing.q == 0 and not nothing.stable
    # A ridge that weighs as at alpha = 2 makes it a minimum, behind a saddle.
    held = dp.flow.fixed_points(paper, alpha=2.0, starts=3)
    assert [point.stable for point in held] == [True, True, False, False]
    assert held[2].m > 0 and held[2].theta > 0


def test_students_in_the_plane_stay_there_and_others_approach_it(paper):
    start = {"m": [0.1, 0.1], "theta": [0.03, 0.03], "q": [0.25 * (0.12**2 + 0.1**2), 0.06]}
    flow = dp.flow.follow(paper, **start, times=[0.0, 100.0, 300.0])
    least = flow.theta**2 / 0.25 + 0.25 * flow.m**2
    np.testing.assert_allclose(flow.q[:, 0], least[:, 0], rtol=1e-4)
    outside = (flow.q - least)[:, 1]
    assert np.all(np.diff(outside) < 0) and outside[-1] < 0.1 * outside[0]
    assert np.all(np.diff(flow.loss, axis=0) < 0)


def test_descent_on_many_sentences_follows_the_flow(paper):
    """At d = 40 and 80, continued to 1/d = 0; 3 errors and corrections of order 1/alpha."""
    alpha, start = 20.0, {"m": 0.1, "theta": 0.03, "q": 0.06}
    runs = [
        dp.flow.descent(paper, alpha, d, **start, until=100.0, records=2, seeds=10, step=1.0)
        for d in (40, 80)
    ]
    flow = dp.flow.follow(paper, **start, times=runs[0]["tau"].values, alpha=alpha)
    for name in ("m", "theta", "q"):
        small, large = (run[name].mean("seed").values for run in runs)
        errors = [run[name].std("seed", ddof=1).values / np.sqrt(10) for run in runs]
        expected = getattr(flow, name)[:, 0]
        assert small[0] == pytest.approx(expected[0], rel=1e-9)
        allowed = 3 * np.hypot(2 * errors[1], errors[0]) + expected / alpha
        assert np.all(np.abs(2 * large - small - expected) <= allowed), name
        # The allowance is narrower than what happens on the way.
        assert allowed[1] < 0.9 * np.ptp(expected) or name == "q"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"q": 0.001}, "q"),
        ({"m": np.nan}, "m, theta, q"),
        ({"m": [0.1, 0.2], "theta": [0.1, 0.1, 0.1]}, "m, theta, q"),
        ({"times": [2.0, 1.0]}, "times"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_bad_input(paper, arguments, field):
    given = {"m": 0.1, "theta": 0.03, "q": 0.06, "times": [1.0]} | arguments
    with pytest.raises(dp.InvalidInput) as caught:
        dp.flow.follow(paper, **given)
    assert caught.value.field == field


def test_other_ranks_are_refused():
    with pytest.raises(dp.InvalidInput, match="must both be 1"):
        dp.flow.fixed_points(dp.positional_semantic(student_rank=2))
