"""One step of state evolution, against closed forms and against itself."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import dotphase as dp
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.branches import BRANCHES
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import Evaluator, device_blocks
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.responses import mean_responses
from dotphase.theory.state_evolution import (
    conjugates,
    draw_fields,
    force_averages,
    free_energy,
    initial_prox_state,
    next_overlaps,
)
from models import ridge_regression


def _overlaps(q, m, V, theta):
    return Overlaps(
        np.full((2, 1, 1), q), np.array([[m], [-m]]), np.full((2, 1, 1), V),
        np.full((2, 1, 1), theta),
    )  # fmt: skip


def test_fields_have_the_covariances_of_the_overlaps():
    model = dp.Model(
        teacher=dp.softmax_attention, student=dp.softmax_attention, length=2, teacher_rank=2,
        student_rank=2, sigma=[0.5, 0.8], positions=np.eye(2),
    )  # fmt: skip
    q = np.array([[[0.3, 0.1], [0.1, 0.2]], [[0.5, -0.1], [-0.1, 0.4]]])
    theta = np.array([[[0.1, 0.05], [0.0, 0.1]], [[0.2, 0.0], [0.1, 0.3]]])
    m = np.array([[0.3, -0.2], [0.1, 0.4]])
    overlaps = Overlaps(q, m, q, theta)
    points = device_blocks(14, 4, 4, 0)
    seen = []
    for block in points:
        fields = eqx.filter_jit(draw_fields)(model, overlaps, block)
        omega = np.asarray(fields.omega).reshape(2, 2, -1)
        seen.append((omega, np.asarray(fields.target)))
    omega = np.concatenate([one for one, _ in seen], axis=-1)
    np.testing.assert_allclose(omega.mean(axis=-1), m, atol=1e-12)
    centred = omega - m[..., None]
    covariance = np.einsum("lin,ljn->lij", centred, centred) / centred.shape[-1]
    np.testing.assert_allclose(covariance, q, atol=2e-3)
    # The teacher's fields enter through softmax(h h^T): its mean must be that of tokens with
    # variance sigma^2 I, whatever the overlaps are.
    h = np.random.default_rng(0).normal(size=(200_000, 2, 2)) * np.array([0.5, 0.8])[:, None]
    expected = np.asarray(jax.jit(jax.vmap(dp.softmax_attention))(h)).mean(axis=0)
    target = np.concatenate([two for _, two in seen], axis=-1).mean(axis=-1)
    np.testing.assert_allclose(target, expected, atol=3e-3)


def test_ridge_regression_has_its_closed_form_conjugates():
    """With a linear student the force is g = (h* - omega)/(1 + V)."""
    model = ridge_regression()
    q, V, theta, alpha = 0.5, 3.0, 0.4, 1.7
    overlaps = Overlaps(
        np.full((1, 1, 1), q), np.zeros((1, 1)), np.full((1, 1, 1), V), np.full((1, 1, 1), theta)
    )
    mean = Evaluator(model).expectations(overlaps, 16, 0).mean
    hats = conjugates(model, alpha, overlaps, mean)
    np.testing.assert_allclose(hats.Vhat, alpha / (1 + V), rtol=1e-3)
    np.testing.assert_allclose(hats.thetahat, alpha / (1 + V), rtol=1e-3)
    np.testing.assert_allclose(hats.qhat, alpha * (1 - 2 * theta + q) / (1 + V) ** 2, rtol=1e-3)


@pytest.mark.parametrize("point", [(0.11, 0.0, 12.0, 0.15), (0.05, 0.26, 11.0, 0.0)])
def test_the_free_energy_is_stationary_at_a_fixed_point(paper, point):
    """Its slope in every parameter is proportional to the residual of state evolution."""
    alpha = 2.0
    branch = "semantic" if point[3] else "positional"
    solution = dp.solve(
        paper, alpha, branch, log2_points=14, iteration=dp.Iteration(tolerance=1e-7)
    )
    evaluator = Evaluator(paper)

    def energy(overlaps):
        mean = evaluator.expectations(overlaps, 14, 0).mean
        return free_energy(paper, alpha, overlaps, mean)

    here = energy(solution.overlaps)
    np.testing.assert_allclose(here, solution.train_loss, rtol=1e-4)
    for part in Overlaps._fields:
        value = getattr(solution.overlaps, part)
        moved = [
            energy(solution.overlaps._replace(**{part: value * (1 + step)}))
            for step in (-0.03, 0.03)
        ]
        slope = abs(moved[1] - moved[0]) / 0.06
        assert slope < 2e-2 * here, part


def test_next_overlaps_keep_the_relations_between_tokens(paper):
    overlaps = _overlaps(0.1, 0.2, 10.0, 0.05)
    mean = Evaluator(paper).expectations(overlaps, 12, 0).mean
    new = next_overlaps(paper, conjugates(paper, 1.5, overlaps, mean))
    np.testing.assert_allclose(new.q[0], new.q[1])
    np.testing.assert_allclose(new.m[0], -new.m[1])
    np.testing.assert_allclose(new.V[0], new.V[1])


LAPACK = ("cholesky", "lu", "triangular_solve", "householder_product", "svd")


def _primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from _primitives(inner)


def _linear(h):
    return h @ h.T


@pytest.mark.parametrize("student, rank", [(dp.softmax_attention, 1), (_linear, 2)])
def test_averages_and_responses_call_no_lapack(student, rank):
    # Two batched calls in one program can wait for each other forever (`numerics.linalg`).
    model = dp.positional_semantic_length(6 // rank).replace(student=student, student_rank=rank)
    overlaps = BRANCHES["semantic"].initial_overlaps(model)
    dims = model.length * (model.student_rank + model.teacher_rank)
    points = np.ones((dims, 4 * N_SCRAMBLES))

    def both(overlaps, points):
        state = initial_prox_state(model, overlaps, points)
        _, state = force_averages(model, overlaps, points, state, 0)
        directions = Coordinates.of(model).directions
        return mean_responses(model, overlaps, points, state, directions)

    # Rows are eliminated in a loop instead.
    names = set(_primitives(jax.make_jaxpr(both)(overlaps, points).jaxpr))
    assert "while" in names
    assert not names & set(LAPACK)
