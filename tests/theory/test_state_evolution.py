"""One step of state evolution, against closed forms and against itself."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import dotphase as dp
from app_tools import wait_for
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.branches import BRANCHES
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import Evaluator, Mirror, device_blocks
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


def test_scrambles_average_to_the_mean(paper):
    expectations = Evaluator(paper).expectations(_overlaps(0.1, 0.2, 10.0, 0.05), 13, 0)
    assert expectations.per_scramble.loss.shape == (N_SCRAMBLES,)
    np.testing.assert_allclose(expectations.mean.loss, expectations.per_scramble.loss.mean())


def test_overlaps_that_are_no_numbers_have_averages_that_are_none(paper):
    expectations = Evaluator(paper).expectations(_overlaps(np.nan, 0.0, 12.0, 0.15), 12, 0)
    assert np.all(np.isnan(expectations.per_scramble.test))


@pytest.mark.parametrize(
    ("point", "mirror", "odd"),
    [
        ((0.1, 0.0, 12.0, 0.15), Mirror.BOTH, "g"),
        ((0.05, 0.25, 11.0, 0.0), Mirror.TEACHER, "gy"),
    ],
)
def test_points_that_a_mirror_leaves_out_have_the_same_averages(paper, point, mirror, odd):
    overlaps, evaluator = _overlaps(*point), Evaluator(paper)
    assert evaluator.mirror(overlaps) is mirror
    (block,) = device_blocks(12, 2, 2, 0, True)
    student = -1.0 if mirror is Mirror.BOTH else 1.0
    expectations = evaluator.expectations(overlaps, 12, 0)
    responses = evaluator.responses(overlaps, 12, 0, expectations.prox_states)
    averages, slopes = [], []
    averages_at, responses_at = map(eqx.filter_jit, (force_averages, mean_responses))
    for points in (block, block * np.array([[student], [student], [-1.0], [-1.0]])):
        state = eqx.filter_jit(initial_prox_state)(paper, overlaps, points)
        values, state = averages_at(paper, overlaps, points, state, np.int32(0))
        averages.append({name: np.asarray(part) for name, part in values._asdict().items()})
        slopes.append(responses_at(paper, overlaps, points, state, evaluator.directions).slopes)
    for slope, one, other in zip(responses.slopes, *slopes, strict=True):
        np.testing.assert_allclose(slope, (one + other) / 2, rtol=1e-5, atol=1e-7)
    per_scramble = expectations.per_scramble._asdict()
    for name, value in averages[0].items():
        sign = -1 if name == odd else 1
        np.testing.assert_allclose(value, sign * averages[1][name], rtol=1e-6, atol=1e-9)
        expected = 0 * value if name == odd else value
        np.testing.assert_allclose(per_scramble[name], expected, rtol=1e-6, atol=1e-9)


def test_responses_are_compiled_beside_the_averages():
    model = ridge_regression().replace(student=lambda h: h[:, :1])
    half = np.full((1, 1, 1), 0.5)
    overlaps, evaluator = Overlaps(half, np.zeros((1, 1)), half, half), Evaluator(model)
    respond = evaluator.compiled_responses
    assert respond.untouched
    expectations = evaluator.expectations(overlaps, 12, 0)
    assert not respond.untouched
    wait_for(lambda: respond._ready, "the responses")
    # For the arguments with which it is then called: nothing is compiled again.
    evaluator.responses(overlaps, 12, 0, expectations.prox_states)
    assert respond._function._cache_size() == 1


def test_without_a_symmetry_all_points_are_used(paper):
    half = np.full((1, 1, 1), 0.5)
    linear = Overlaps(half, np.zeros((1, 1)), half, half)
    for model, overlaps in (
        (paper, _overlaps(0.08, 0.1, 18.0, 0.02)),
        (ridge_regression(), linear),
    ):
        evaluator = Evaluator(model)
        assert evaluator.mirror(overlaps) is None
        points = sum(block.shape[-1] for block in evaluator.blocks(overlaps, 12, 0))
        assert points == 2**12


def test_a_mirror_halves_the_points(paper):
    blocks = Evaluator(paper).blocks(_overlaps(0.1, 0.0, 12.0, 0.15), 13, 0)
    assert sum(block.shape[-1] for block in blocks) == 2**12


def test_averages_on_more_points_start_from_the_states_of_fewer(paper):
    overlaps, evaluator = _overlaps(0.1, 0.0, 12.0, 0.15), Evaluator(paper)
    few = evaluator.expectations(overlaps, 12, 0)
    many = evaluator.expectations(overlaps, 13, 0, few.prox_states, 1)
    fresh = evaluator.expectations(overlaps, 13, 0, (), 1)
    assert len(many.prox_states) == 2 * len(few.prox_states)
    np.testing.assert_allclose(many.mean.loss, fresh.mean.loss, rtol=1e-6)


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
