"""Losses at finite d: exact where they can be, and what training measures."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.test_error import attention_error, quadrature
from dotphase.theory.expectations import evaluator_of
from dotphase.theory.finite_d_corrections import TERMS, _block
from dotphase.theory.state_evolution import draw_fields


@pytest.fixture(scope="module")
def solution(paper):
    return dp.solve(paper, 2.0, "positional", log2_points=12)


def student(model, solution, d):
    """Weights with the overlaps of a solution, to the last digit."""
    rng = np.random.default_rng(0)
    flat = np.ones(d) / np.sqrt(d)
    basis = np.linalg.qr(np.column_stack([flat, rng.standard_normal((d, 2))]))[0]
    teacher = np.sqrt(d) * basis[:, 1]
    rho = float(model.rho[0])
    m, t = float(solution.overlaps.m[0, 0]), float(solution.overlaps.theta[0, 0, 0]) / rho
    size = float(solution.overlaps.q[0, 0, 0]) / rho
    rest = np.sqrt(size - m**2 - t**2)
    sign = float(basis[:, 0] @ flat)
    weights = np.sqrt(d) * (m * sign * basis[:, 0] + t * basis[:, 1] + rest * basis[:, 2])
    positions = np.stack([flat, -flat])
    return weights[:, None], teacher[:, None], positions


def test_the_test_error_is_that_of_a_student_with_these_overlaps(paper, solution):
    """The exact average over sentences of dimension d has the same terms of order 1/d."""
    d = 50
    weights, teacher, positions = map(jnp.asarray, student(paper, solution, d))
    rule = quadrature(paper)
    error = eqx.filter_jit(attention_error)
    exact = float(error(paper, weights, teacher, positions, rule))
    limit = float(error(paper, *map(jnp.asarray, student(paper, solution, 10**6)), rule))
    ours = solution.at(d)
    assert d * (ours.test_error - solution.test_error) == pytest.approx(
        d * (exact - limit), rel=0.03
    )
    assert exact - limit > 10 * solution.stderr["test_error"] / d


def test_terms_fall_like_one_over_d(solution):
    near, far = solution.at(100), solution.at(1000)
    assert near.terms == far.terms and set(near.terms["train_loss"]) == set(TERMS)
    gaps = [one.train_loss - solution.train_loss for one in (near, far)]
    assert gaps[0] == pytest.approx(10 * gaps[1])
    assert near.to_dict()["train_loss"] == near.train_loss
    assert "limit + [" in str(near)


def test_training_has_the_same_terms_at_the_proximal_points(paper, solution):
    """With the fields themselves in their place they are those of the test error."""
    points = evaluator_of(paper).blocks(solution.overlaps, 12, solution.seed)[0]
    omega = draw_fields(paper, solution.overlaps, points).omega
    trained, tested = np.moveaxis(_block(paper, solution.overlaps, points, omega), 1, 0)
    np.testing.assert_allclose(trained, tested, rtol=1e-12)
    moved, same = np.moveaxis(_block(paper, solution.overlaps, points, 1.1 * omega), 1, 0)
    np.testing.assert_allclose(same, tested, rtol=1e-12)
    assert np.all(moved != tested)


def test_bad_dimensions_are_refused(solution):
    with pytest.raises(dp.InvalidInput, match=r"^d = "):
        solution.at(0)
