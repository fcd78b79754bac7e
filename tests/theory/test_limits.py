"""Limits in which the answer is known from somewhere else."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dotphase as dp

POINTS = 13
#: Nothing jumps here, so that the iteration can settle below the weight of a point.
EXACTLY = dp.Iteration(tolerance=1e-7)


def linear(h):
    return h


def _gaussian_nodes(count):
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def _softmax(scores):
    weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


def _paper_teacher(h, omega=0.3):
    """T of the paper at h of shape (..., 2)."""
    attention = _softmax(h[..., :, None] * h[..., None, :])
    return (1 - omega) * attention + omega * np.array([[0.6, 0.4], [0.4, 0.6]])


def _teacher_nodes(count, sigma=0.5):
    nodes, weights = _gaussian_nodes(count)
    h = sigma * np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    return h, np.outer(weights, weights).ravel()


def _ridge_regression(alpha, ridge):
    """Overlaps of ridge regression on noiseless labels with unit inputs.

    V solves ``ridge V + alpha V/(1+V) = 1``; the rest is linear.
    """
    b = ridge + alpha - 1
    V = (math.sqrt(b * b + 4 * ridge) - b) / (2 * ridge)
    hat = alpha / (1 + V)
    theta = V * hat
    response = V**2 * alpha / (1 + V) ** 2
    q = (response * (1 - 2 * theta) + V**2 * hat**2) / (1 - response)
    error = 1 - 2 * theta + q
    energy = alpha * 0.5 * error / (1 + V) ** 2 + 0.5 * ridge * q
    return {"V": V, "theta": theta, "q": q, "test_error": error, "train_loss": energy}


@pytest.mark.parametrize(("alpha", "ridge"), [(1.0, 0.01), (0.5, 0.1), (2.0, 0.3), (1.5, 1.0)])
def test_a_linear_student_is_ridge_regression(alpha, ridge):
    model = dp.scalar_link(linear, linear, ridge=ridge)
    solution = dp.solve(model, alpha, "semantic", log2_points=17)
    exact = _ridge_regression(alpha, ridge)
    assert solution.converged and solution.found == "semantic"
    assert solution.stability.trusted and solution.stability.jump_weight < 1e-2
    for name in ("V", "theta", "q"):
        assert solution.norms[name] == pytest.approx(exact[name], rel=1e-3)
    # At the smallest ridge the test error is a difference of numbers twenty times its size.
    loose = {"test_error": 2e-3 if ridge == 0.01 else 1e-3, "train_loss": 1e-3}
    for name, rel in loose.items():
        assert getattr(solution, name) == pytest.approx(exact[name], rel=rel)


def test_the_known_number_of_ridge_regression():
    variance = _ridge_regression(1.0, 0.01)["V"]
    assert variance * (1 + variance) == pytest.approx(100, rel=1e-12)


def test_the_scale_of_the_inputs_can_be_absorbed():
    """Inputs twice as large with four times the ridge: the same predictions."""
    one = dp.solve(
        dp.scalar_link(linear, linear, ridge=0.3), 2.0, log2_points=POINTS, iteration=EXACTLY
    )
    model = dp.scalar_link(linear, linear, sigma=2.0, ridge=1.2)
    two = dp.solve(model, 2.0, log2_points=POINTS, iteration=EXACTLY)
    assert two.norms["theta"] == pytest.approx(4 * one.norms["theta"], rel=1e-4)
    assert two.norms["V"] == pytest.approx(one.norms["V"], rel=1e-4)
    assert two.test_error == pytest.approx(4 * one.test_error, rel=1e-3)


def _scalar_state_evolution(teacher, student, slope, alpha, ridge, nodes=48):
    """The equations of a generalised linear model by tensor quadrature, written anew.

    The proximal point is looked for on a grid over ``|X - omega| <= sqrt(V) |f* - f(omega)|``,
    outside of which the objective is larger than at omega, and polished by bisection of its
    derivative; no code is shared with the package.
    """
    x, weights = _gaussian_nodes(nodes)
    xi, y = (part.ravel() for part in np.meshgrid(x, x, indexing="ij"))
    weight = np.outer(weights, weights).ravel()
    steps = np.linspace(-1, 1, 161)[:, None]
    q, theta, V = 0.5, 0.5, 1.0
    for _ in range(400):
        omega = np.sqrt(q) * xi
        left = np.sqrt(1 - theta**2 / q)
        target = teacher(theta / np.sqrt(q) * xi + left * y)
        reach = np.sqrt(V) * np.abs(target - student(omega)) + 1e-12
        grid = omega + steps * reach
        value = (grid - omega) ** 2 / (2 * V) + (target - student(grid)) ** 2 / 2
        best = np.clip(np.argmin(value, axis=0), 1, len(steps) - 2)
        low, high = (grid[best + k, np.arange(omega.size)] for k in (-1, 1))
        for _ in range(45):
            middle = (low + high) / 2
            rising = (middle - omega) / V - (target - student(middle)) * slope(middle) > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        g = ((low + high) / 2 - omega) / V
        qhat, thetahat = alpha * weight @ g**2, alpha * weight @ (g * y) / left
        Vhat = -alpha * weight @ (g * xi) / np.sqrt(q) + thetahat * theta / q
        R = 1 / (ridge + Vhat)
        new = np.array([R**2 * (qhat + thetahat**2), R * thetahat, R])
        old = np.array([q, theta, V])
        q, theta, V = 0.5 * new + 0.5 * old
        if np.max(np.abs(new - old)) < 1e-9:
            break
    else:
        raise AssertionError("the independent solver did not converge")
    error = weight @ (target - student(omega)) ** 2
    return {"q": q, "theta": theta, "V": V}, float(error)


def _softplus(h):
    return np.logaddexp(0, h)


@pytest.mark.parametrize(
    ("teacher", "student", "alpha"),
    [
        ((jnp.tanh, np.tanh), (jnp.tanh, np.tanh, lambda x: 1 / np.cosh(x) ** 2), 3.0),
        (
            (lambda h: jnp.maximum(h, 0.0), lambda h: np.maximum(h, 0.0)),
            (lambda h: jnp.logaddexp(0.0, h), _softplus, lambda x: 1 / (1 + np.exp(-x))),
            2.0,
        ),
    ],
    ids=["tanh-tanh", "relu-softplus"],
)
def test_scalar_links_obey_the_equations_of_generalized_linear_models(teacher, student, alpha):
    """One student that could become its teacher, one that could not."""
    ridge = 0.1
    model = dp.scalar_link(teacher[0], student[0], ridge=ridge)
    solution = dp.solve(model, alpha, "semantic", log2_points=16)
    assert solution.converged and solution.found == "semantic"
    overlaps, error = _scalar_state_evolution(teacher[1], *student[1:], alpha, ridge)
    for name, value in overlaps.items():
        assert solution.norms[name] == pytest.approx(value, rel=2e-3)
    assert solution.test_error == pytest.approx(error, rel=4e-3)


def test_without_data_the_ridge_decides(paper):
    """alpha -> 0: V = sigma^2/ridge, no alignment, and each sample is fitted by itself:
    ``train_loss/alpha -> E min_X [|X|^2/(2V) + ell(X; T)]``."""
    alpha = 1e-4
    solution = dp.solve(paper, alpha, "uninformed", log2_points=POINTS)
    assert solution.converged
    assert solution.norms["V"] == pytest.approx(25, rel=0.01)
    assert solution.norms["q"] < 1e-4
    axis = np.linspace(-2.5, 2.5, 101)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    student = _paper_teacher(x, omega=0.0)
    h, weights = _teacher_nodes(16)
    envelope = [
        np.min(np.sum(x**2, axis=1) / 50 + 0.125 * np.sum((target - student) ** 2, axis=(1, 2)))
        for target in _paper_teacher(h)
    ]
    assert solution.train_loss / alpha == pytest.approx(weights @ envelope, rel=5e-3)


def test_the_other_branches_end_where_data_are_few(paper):
    for branch in ("semantic", "positional"):
        solution = dp.solve(paper, 1e-3, branch, log2_points=POINTS)
        assert not solution.on_branch and solution.found == "uninformed"


def test_with_many_data_the_teacher_is_learned():
    """alpha -> infinity at omega = 0: the student is the teacher."""
    solution = dp.solve(dp.positional_semantic(omega=0.0), 1e4, "semantic", log2_points=POINTS)
    assert solution.converged
    assert solution.norms["theta"] == pytest.approx(0.25, rel=1e-3)
    assert solution.norms["q"] == pytest.approx(0.25, rel=1e-3)
    assert solution.norms["V"] < 0.01
    assert solution.test_error < 1e-8
    # Only the ridge is left to pay: |Q*|^2/2 per dimension.
    assert solution.train_loss == pytest.approx(0.005, rel=1e-3)


def test_with_many_data_the_best_semantic_student_is_found(paper):
    """alpha -> infinity at omega = .3: Q = c Q* with c at the minimum of the test error."""
    h, weights = _teacher_nodes(40)
    target = _paper_teacher(h)

    def error(c):
        miss = target - _paper_teacher(c * h, omega=0.0)
        return 0.125 * weights @ np.sum(miss**2, axis=(1, 2))

    best = minimize_scalar(error, bounds=(0.3, 1.5), method="bounded", options={"xatol": 1e-8})
    solution = dp.solve(paper, 1e4, "semantic", log2_points=17)
    assert solution.converged
    assert solution.norms["theta"] / 0.25 == pytest.approx(best.x, rel=1e-3)
    assert solution.norms["q"] / 0.25 == pytest.approx(best.x**2, rel=1e-3)
    assert solution.test_error == pytest.approx(best.fun, rel=2e-3)


def test_a_purely_positional_teacher_has_nothing_semantic():
    """omega = 1: T = A for every sentence, which the linear layer reproduces."""
    model = dp.positional_semantic(omega=1.0)
    semantic = dp.solve(model, 1.5, "semantic", log2_points=POINTS)
    assert not semantic.on_branch and semantic.norms["theta"] < 1e-6
    positional = dp.solve(model, 1.5, "positional", log2_points=POINTS)
    assert positional.converged and positional.on_branch
    assert positional.norms["theta"] == 0
    assert positional.linear_test_error < 1e-20
    assert positional.train_loss < 0.7 * semantic.train_loss


def test_a_purely_semantic_teacher_prefers_the_semantic_branch():
    """omega = 0: the semantic minimum is lower, at an alpha where omega = .7 prefers the other."""
    losses = {
        (omega, branch): dp.solve(
            dp.positional_semantic(omega=omega), 1.5, branch, log2_points=POINTS
        ).train_loss
        for omega in (0.0, 0.7)
        for branch in ("semantic", "positional")
    }
    assert losses[0.0, "semantic"] < 0.9 * losses[0.0, "positional"]
    assert losses[0.7, "semantic"] > 1.02 * losses[0.7, "positional"]


def test_small_tokens_leave_a_deterministic_student():
    """sigma -> 0 with ridge of order sigma^2: fields vanish, X = (m, -m), and m minimises
    ``2 alpha (s(2 m^2) - T_11)^2 + ridge/(2 sigma^2) m^2`` with T = (1 - omega)/2 + omega A."""
    alpha, sigma, strength = 1.5, 0.003, 0.04
    model = dp.positional_semantic(sigma=sigma, ridge=strength * sigma**2)
    solution = dp.solve(model, alpha, "positional", log2_points=POINTS)

    def energy(m):
        own = 1 / (1 + np.exp(-2 * m**2))
        return 2 * alpha * (own - 0.53) ** 2 + 0.5 * strength * m**2

    best = minimize_scalar(energy, bounds=(0.02, 1.0), method="bounded", options={"xatol": 1e-9})
    assert solution.converged and solution.on_branch
    assert solution.norms["m"] == pytest.approx(best.x, rel=1e-3)
    assert solution.train_loss / sigma**2 == pytest.approx(best.fun, rel=1e-3)
    assert solution.norms["q"] < 1e-3 * sigma
    # With the ridge as it is, tokens too small to pay for any student leave none.
    nothing = dp.solve(dp.positional_semantic(sigma=sigma), alpha, "semantic", log2_points=POINTS)
    assert nothing.converged and nothing.found == "uninformed"
    assert nothing.norms["V"] == pytest.approx(sigma**2 / 0.01, rel=1e-3)
